// Debian's chromium under playwright-core, and what the tests read from the page.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

/** Opens a browser with a folder of its own; `close()` ends it and removes the folder. */
export async function openBrowser(options = {}) {
  const executablePath = process.env.NORMLAB_CHROMIUM ?? '/usr/bin/chromium';
  if (!existsSync(executablePath)) {
    throw new Error(
      `${executablePath} not found: apt-get install chromium (or set NORMLAB_CHROMIUM)`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'normlab-chromium-'));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    headless: true,
    viewport: { width: 1440, height: 900 },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
    ...options,
  });
  return {
    context,
    async newPage() {
      const page = await context.newPage();
      const faults = [];
      page.on('pageerror', (error) => faults.push(String(error)));
      page.on('console', (message) => {
        if (message.type() === 'error') faults.push(message.text());
      });
      // Nothing may be fetched from anywhere but the server.
      page.on('request', (request) => {
        const { hostname, protocol } = new URL(request.url());
        if (protocol !== 'data:' && hostname !== '127.0.0.1') faults.push(`asked ${request.url()}`);
      });
      return Object.assign(page, { faults });
    },
    async close() {
      await context.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The extent of a colour in a chart as drawn: columns of the canvas that have a pixel of it, the
 * first and the last of them, and the rows between which it lies. Read from the canvas' pixels.
 */
export function drawnExtent(page, series, colour) {
  return page.evaluate(
    ({ series, colour }) => {
      const canvas = document.querySelector(`[data-series="${series}"] canvas`);
      if (!canvas) return { columns: 0, left: -1, right: -1, top: -1, bottom: -1, width: 0 };
      const { width, height } = canvas;
      const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
      const [red, green, blue] = [1, 3, 5].map((at) =>
        Number.parseInt(colour.slice(at, at + 2), 16),
      );
      const found = { columns: 0, left: -1, right: -1, top: height, bottom: -1, width };
      for (let x = 0; x < width; x++) {
        let hit = false;
        for (let y = 0; y < height; y++) {
          const at = 4 * (y * width + x);
          const near = (channel, value) => Math.abs(pixels[at + channel] - value) <= 24;
          // A line's core is opaque; its smoothed edges are not counted.
          if (pixels[at + 3] < 200 || !near(0, red) || !near(1, green) || !near(2, blue)) continue;
          hit = true;
          found.top = Math.min(found.top, y);
          found.bottom = Math.max(found.bottom, y);
        }
        if (!hit) continue;
        found.columns++;
        if (found.left < 0) found.left = x;
        found.right = x;
      }
      return found;
    },
    { series, colour },
  );
}

/** Waits until `look` gives something true, at most `seconds`; says what it saw last if not. */
export async function until(what, look, seconds = 30) {
  const end = Date.now() + 1000 * seconds;
  let seen;
  do {
    seen = await look();
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (Date.now() < end);
  throw new Error(`waited ${seconds} s for ${what}; saw ${JSON.stringify(seen)}`);
}
