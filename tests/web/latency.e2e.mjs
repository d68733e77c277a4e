// From a point made by a trainer to the point drawn in a browser, and that nobody polls:
//   NORMLABD=… NORMLAB=… node latency.e2e.mjs ARTEFACTS [SECONDS] [BOUND]
// Three runs at 20 steps a second are watched for SECONDS (default 6). Each loss is the time when it
// was made, so the chart itself says how old what it shows is. With a BOUND in milliseconds the 95th
// percentile must be below it; without, it is only printed, since a busy machine says nothing.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { loggedRequests, openBrowser, seeCharts, until } from './browser.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts, seconds = '6', bound] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });
const curves = 3;
const stepsPerSecond = 20;

const server = new RealServer({
  script: `value=clock,steps_per_second=${stepsPerSecond}`,
  options: ['--cpu-slots', String(curves)],
});
const folder = mkdtempSync(join(tmpdir(), 'normlab-netlog-'));
const netLog = join(folder, 'net.json');
let browser;
after(async () => {
  await browser?.close();
  await server.end();
  rmSync(folder, { recursive: true, force: true });
});

/**
 * Runs in the page: after each drawing it takes from the chart the points that are new in it, and
 * notes for each how old it is when the frame after that begins: it has been painted by then.
 */
function measureAges() {
  const ages = [];
  window.ages = ages;
  const clock = Date.now() - performance.now();
  const last = [];
  addEventListener('drawn', ({ target, detail: plot }) => {
    if (target.closest('[data-series]').dataset.series !== 'loss') return;
    const fresh = [];
    plot.data.slice(1).forEach((values, line) => {
      for (let at = values.length - 1; at >= 0 && plot.data[0][at] > (last[line] ?? 0); at--) {
        if (typeof values[at] === 'number') fresh.push({ line, made: values[at] });
      }
      const newest = values.findLastIndex((value) => typeof value === 'number');
      if (newest >= 0) last[line] = plot.data[0][newest];
    });
    requestAnimationFrame(() => {
      const now = clock + performance.now();
      for (const { line, made } of fresh) ages.push({ line, made, age: now - made });
    });
  });
}

const share = (sorted, part) =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];

test('points are drawn soon after they are made, and nobody polls', async () => {
  await server.start();
  const ids = [];
  for (let index = 0; index < curves; index++) {
    ids.push((await server.submit(`clock ${index + 1}`, { steps: 100_000 })).id);
  }
  await until('runs', async () => {
    const states = await Promise.all(ids.map((id) => server.api('GET', `/runs/${id}`)));
    return states.every(({ progress }) => Number(progress?.step ?? 0) > 5);
  });

  browser = await openBrowser({ netLog });
  const page = await browser.newPage();
  await seeCharts(page);
  await page.addInitScript(measureAges);
  const address = server.loginAddress();
  await page.goto(address);
  await page.locator('.connection.live').waitFor();
  await page.evaluate((sel) => {
    location.hash = `#/runs?sel=${sel}`;
  }, ids.join());
  await until('all curves', () =>
    page.evaluate((lines) => new Set(window.ages.map(({ line }) => line)).size === lines, curves),
  );
  await page.waitForTimeout(1000);

  const begin = Date.now();
  await page.waitForTimeout(1000 * Number(seconds));
  const end = Date.now();
  assert.equal(await server.watchers(), 1, 'event streams');
  const seen = await page.evaluate(() => window.ages);
  await page.screenshot({ path: join(artefacts, 'latency.png') });
  assert.deepEqual(page.faults, []);
  await browser.close();
  browser = undefined;

  // Besides what the browser does for itself. That the log is one: it knows the event stream.
  const asked = loggedRequests(netLog).filter(({ url }) => new URL(url).host === server.http);
  assert.ok(asked.some(({ url }) => new URL(url).pathname === '/api/v1/events'));
  const during = asked.filter(({ time }) => time >= begin && time <= end);
  assert.deepEqual(during, [], 'requests while everything is live');

  const ages = seen
    .filter(({ made }) => made >= begin && made < end - 1000)
    .map(({ age }) => age)
    .sort((a, b) => a - b);
  const expected = curves * stepsPerSecond * (Number(seconds) - 1);
  assert.ok(ages.length > 0.9 * expected, `${ages.length} of about ${expected} points were drawn`);
  const figures = {
    points: ages.length,
    median: Math.round(share(ages, 0.5)),
    p95: Math.round(share(ages, 0.95)),
    p99: Math.round(share(ages, 0.99)),
    most: Math.round(ages.at(-1)),
    requests: during.length,
  };
  console.log(
    `point made to point drawn, ${curves} curves at ${stepsPerSecond} steps/s for ${seconds} s: ` +
      `median ${figures.median} ms, 95% ${figures.p95} ms, 99% ${figures.p99} ms, ` +
      `most ${figures.most} ms (${figures.points} points); ${figures.requests} requests meanwhile`,
  );
  writeFileSync(join(artefacts, 'latency.json'), `${JSON.stringify(figures)}\n`);
  if (bound) assert.ok(figures.p95 < Number(bound), `95% ${figures.p95} ms, bound ${bound} ms`);
});
