// Debian's chromium under playwright-core, and what the tests read from the page.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

/**
 * Opens a browser with a folder of its own; `close()` ends it and removes the folder. `netLog`: a
 * file for its own log of everything on the network, whole once it is closed.
 */
export async function openBrowser({ netLog, ...options } = {}) {
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
      ...(netLog ? [`--log-net-log=${netLog}`] : []),
    ],
    ...options,
  });
  if (process.env.NORMLAB_PAGE) await servePage(context, process.env.NORMLAB_PAGE);
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
    /** Process ids of everything that runs pages and workers. */
    renderers: () => renderersOf(folder),
    async close() {
      await context.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// Instead of the page in the server, one that was just built (`vite build --outDir FOLDER`): for whoever
// works on the page and does not want to link the server each time.
function servePage(context, folder) {
  const isPage = ({ pathname }) => pathname === '/' || pathname.startsWith('/assets/');
  return context.route(isPage, async (route) => {
    const { pathname } = new URL(route.request().url());
    const headers = (
      await route.fetch({ url: new URL('/', route.request().url()).href })
    ).headers();
    const policy = headers['content-security-policy'];
    await route.fulfill({
      path: join(folder, pathname === '/' ? 'index.html' : pathname),
      headers: { 'Content-Security-Policy': policy },
    });
  });
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

function renderersOf(folder) {
  const processes = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      processes.set(Number(pid), { parent: Number(parent), command });
    } catch {
      // Ended meanwhile.
    }
  }
  const isOurs = (pid) => {
    const found = processes.get(pid);
    if (!found) return false;
    return found.command.includes(`--user-data-dir=${folder}`) || isOurs(found.parent);
  };
  const all = [...processes].filter(([, { command }]) => command.includes('--type=renderer'));
  return all.map(([pid]) => pid).filter(isOurs);
}

/** The requests in a browser's log of the network: when each began (ms since 1970), and for what. */
export function loggedRequests(netLog) {
  const { constants, events } = JSON.parse(readFileSync(netLog, 'utf8'));
  const started = constants.logEventTypes.URL_REQUEST_START_JOB;
  return events
    .filter(({ type, params }) => type === started && params?.url)
    .map(({ time, params }) => ({
      time: Number(time) + Number(constants.timeTickOffset),
      method: params.method,
      url: params.url,
    }));
}

/** Before the page is opened: lets the functions below see what its charts have drawn. */
export function seeCharts(page) {
  return page.addInitScript(() => {
    window.charts = {};
    addEventListener('drawn', ({ target, detail }) => {
      window.charts[target.closest('[data-series]').dataset.series] = detail;
    });
  });
}

/**
 * Before the page is opened: notes when each chart first has a point of every one of its lines, in
 * milliseconds after the page was asked for, by when the frame after that begins.
 */
export function timeCharts(page) {
  return page.addInitScript(() => {
    window.firstDrawn = {};
    addEventListener('drawn', ({ target, detail: plot }) => {
      const name = target.closest('[data-series]').dataset.series;
      const lines = plot.data.slice(1);
      const isWhole = lines.every((values) => values.some((value) => typeof value === 'number'));
      if (lines.length === 0 || !isWhole || name in window.firstDrawn) return;
      requestAnimationFrame(() => {
        window.firstDrawn[name] ??= performance.now();
      });
    });
  });
}

/** [step, value] of the points of each line as drawn; null is a point that no axis can show. */
export function drawnPoints(page, series) {
  return page.evaluate((series) => {
    const [steps, ...lines] = window.charts[series]?.data ?? [[]];
    return lines.map((values) =>
      steps.flatMap((step, index) => (values[index] === undefined ? [] : [[step, values[index]]])),
    );
  }, series);
}

/** Puts the pointer on a chart at a place of its x axis. */
export async function putCursor(page, series, x) {
  const left = await page.evaluate(({ series, x }) => window.charts[series].valToPos(x, 'x'), {
    series,
    x,
  });
  await page.locator(`[data-series="${series}"] .u-over`).hover({ position: { x: left, y: 80 } });
}

/** What is written below a chart about the place under the cursor, once it says anything of `text`. */
export function cursorNote(page, series, text) {
  const note = page.locator(`[data-series="${series}"] .here`);
  return until(`"${text}" below ${series}`, async () => {
    const seen = await note.textContent();
    return seen.includes(text) && seen;
  });
}

/**
 * What mark is drawn at a step at the top or bottom edge of a chart, by its pixels: '▲' gets wider
 * downwards, '▼' narrower, '○' is two strokes in the middle, and '×' two at both ends; '' is
 * nothing, or no mark.
 */
export function markAt(page, series, step, edge, colour = '#2563eb') {
  return page.evaluate(
    ({ series, step, edge, colour }) => {
      const plot = window.charts[series];
      const wanted = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
      const scale = devicePixelRatio;
      const height = 8 * scale;
      const { top, height: inside } = plot.bbox;
      const x = Math.round(plot.valToPos(step, 'x', true));
      const y = edge === 'top' ? top : top + inside - height;
      const runsAt = (share) => {
        const row = Math.round(y + share * height);
        const { data } = plot.ctx.getImageData(x - 5 * scale, row, 10 * scale, 1);
        const filled = [];
        for (let at = 0; at < data.length; at += 4) {
          const near = wanted.every((value, channel) => Math.abs(value - data[at + channel]) < 60);
          filled.push(near && data[at + 3] > 100 ? '#' : ' ');
        }
        return filled.join('').trim().split(/ +/).filter(Boolean);
      };
      const [upper, lower] = [runsAt(0.15), runsAt(0.8)];
      if (runsAt(0.5).length === 2) return '○';
      if (upper.length === 2 && lower.length === 2) return '×';
      if (upper.length !== 1 || lower.length !== 1) return '';
      const [above, below] = [upper[0].length, lower[0].length];
      return Math.abs(above - below) < 2 ? '' : above < below ? '▲' : '▼';
    },
    { series, step, edge, colour },
  );
}

/** What the download menu of a chart gives: the file's name and content. */
export async function takeAway(page, title, kind) {
  const waiting = page.waitForEvent('download');
  await page.getByRole('button', { name: `download ${title}` }).click();
  await page.getByRole('button', { name: kind, exact: true }).click();
  const file = await waiting;
  return { name: file.suggestedFilename(), content: readFileSync(await file.path()) };
}

/** The elements of an SVG file, as a browser reads it: [name, attributes, own text] of each. */
export async function svgElements(page, content) {
  const elements = await page.evaluate((text) => {
    const { documentElement } = new DOMParser().parseFromString(text, 'image/svg+xml');
    return [documentElement, ...documentElement.querySelectorAll('*')].map((element) => [
      element.localName,
      Object.fromEntries([...element.attributes].map(({ name, value }) => [name, value])),
      element.textContent,
    ]);
  }, content.toString());
  if (elements[0][0] !== 'svg') throw new Error(`no SVG: ${content.toString().slice(0, 200)}`);
  return elements;
}

/** Size of a PNG file, and how many pixels of a colour are in its rows from `top` on. */
export function pngPixels(page, content, colour, top = 0) {
  return page.evaluate(
    async ([address, colour, top]) => {
      const image = new Image();
      image.src = address;
      await image.decode();
      const { width, height } = image;
      const canvas = Object.assign(document.createElement('canvas'), { width, height });
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, top, width, height - top);
      const wanted = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
      let found = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (wanted.every((value, channel) => Math.abs(value - data[at + channel]) < 8)) found++;
      }
      return { width, height, found };
    },
    [`data:image/png;base64,${content.toString('base64')}`, colour, top],
  );
}

/**
 * What axe finds wrong with how the page can be used, if it is serious, with the elements; [] when
 * all is well.
 */
export async function seriousFaults(page) {
  await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations, passes } = await page.evaluate(() => window.axe.run());
  if (passes.length === 0) throw new Error('axe looked at nothing');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/**
 * Pictures NAME_light.png, NAME_dark.png and NAME_phone.png of the page as it is, after which it is
 * light and wide again; throws if something sticks out sideways, or if axe finds a serious fault.
 * `height`: of the window, in CSS pixels.
 */
export async function takePictures(page, artefacts, name, { height = 900 } = {}) {
  const problems = [];
  for (const [look, colorScheme, width] of [
    ['light', 'light', 1440],
    ['dark', 'dark', 1440],
    ['phone', 'light', 390],
  ]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(400); // a chart is drawn anew when its size has settled
    await page.screenshot({ path: join(artefacts, `${name}_${look}.png`) });
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) {
      problems.push(`${look}: something sticks out sideways`);
    }
    problems.push(...(await seriousFaults(page)).map((fault) => `${look}: ${fault}`));
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 900 });
  if (problems.length > 0) throw new Error(`${name}: ${problems.join('\n')}`);
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
