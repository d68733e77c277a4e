// Fifty runs that train while one page draws them all, for MINUTES (default .5):
//   NORMLABD=… NORMLAB=… node crowd.e2e.mjs ARTEFACTS [MINUTES]
// What the page holds in memory grows by less than 50 MB, also as the system counts it, with canvases
// and the worker that has the stream; and what the server sends grows with the number of new points
// and with nothing else.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { drawnPoints, openBrowser, seeCharts, until } from './browser.mjs';
import { FlakyNetwork } from './flaky_network.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts, minutes = '.5'] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });
const runs = 50;
const stepsPerSecond = 2;
const mostGrowth = 50e6; // bytes

const network = new FlakyNetwork();
const server = new RealServer({
  script: `steps_per_second=${stepsPerSecond}`,
  options: ['--cpu-slots', String(runs)],
});
let browser;
after(async () => {
  await browser?.close();
  await server.end();
  await network.close();
});

/** Bytes that the page holds, once what nobody needs is gone. */
async function heldBytes(session) {
  await session.send('HeapProfiler.collectGarbage');
  const {
    usedSize,
    embedderHeapUsedSize = 0,
    backingStorageSize = 0,
  } = await session.send('Runtime.getHeapUsage');
  return usedSize + embedderHeapUsedSize + backingStorageSize;
}

/** Bytes of memory of these processes together. */
function residentBytes(pids) {
  const ofProcess = (pid) => {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return 1024 * Number(kilobytes);
  };
  return pids.reduce((sum, pid) => sum + ofProcess(pid), 0);
}

test('fifty live runs cost a page little, and no more with time', async () => {
  const port = await network.listen();
  server.allowPort(port);
  await server.start();
  network.forwardTo(server.http);
  const ids = [];
  for (let index = 1; index <= runs; index++) {
    ids.push((await server.submit(`crowd ${index}`, { steps: 1_000_000, seed: index })).id);
  }
  browser = await openBrowser();
  const page = await browser.newPage();
  await seeCharts(page);
  await page.goto(server.loginAddress().replace(server.http, `127.0.0.1:${port}`));
  await page.locator('.connection.live').waitFor();
  await page.evaluate((sel) => {
    location.hash = `#/compare?runs=${sel}`;
  }, ids.join());
  const drawn = async () => {
    const lines = await drawnPoints(page, 'loss');
    return lines.map((line) => line.length);
  };
  await until(
    'fifty curves that grow',
    async () => {
      const lengths = await drawn();
      return lengths.length === runs && lengths.every((length) => length > 5);
    },
    90,
  );

  const session = await page.context().newCDPSession(page);
  const half = 30_000 * Number(minutes);
  // Whatever runs the page and its worker; the browser may start others, for pages to come.
  const processes = browser.renderers();
  const looks = [];
  for (let look = 0; look < 3; look++) {
    if (look > 0) await page.waitForTimeout(half);
    const points = (await drawn()).reduce((sum, length) => sum + length);
    const held = await heldBytes(session);
    looks.push({ points, bytes: network.received, held, resident: residentBytes(processes) });
  }
  await page.screenshot({ path: join(artefacts, 'crowd.png') });
  const [begin, middle, end] = looks;
  const perPoint = (from, to) => (to.bytes - from.bytes) / (to.points - from.points);
  const figures = {
    points: end.points - begin.points,
    bytesOfPoint: [perPoint(begin, middle), perPoint(middle, end)].map(Math.round),
    grown: end.held - begin.held,
    held: end.held,
    residentGrown: end.resident - begin.resident,
  };
  console.log(
    `${runs} live runs for ${minutes} min: ${figures.points} points of loss, ` +
      `${figures.bytesOfPoint.join(' and then ')} bytes each, the page holds ` +
      `${(end.held / 1e6).toFixed(1)} MB, ${(figures.grown / 1e6).toFixed(1)} MB more than before; ` +
      `its processes take ${(figures.residentGrown / 1e6).toFixed(1)} MB more`,
  );
  writeFileSync(join(artefacts, 'crowd.json'), `${JSON.stringify(figures)}\n`);

  assert.ok(
    figures.points > 0.5 * runs * stepsPerSecond * 60 * Number(minutes),
    `${figures.points}`,
  );
  assert.ok(figures.grown < mostGrowth, `${figures.grown} bytes more`);
  assert.ok(figures.residentGrown < mostGrowth, `${figures.residentGrown} bytes more in processes`);
  const [first, second] = figures.bytesOfPoint;
  assert.ok(second < 1.3 * first, `${first} bytes a point, and later ${second}`);
  assert.equal(await server.watchers(), 1, 'event streams');
  // Every line is what is stored, up to its last point.
  const lines = await drawnPoints(page, 'loss');
  for (const at of [0, 24, 49]) {
    const stored = await server.stored(ids[at]);
    assert.deepEqual(lines[at], stored.slice(0, lines[at].length));
  }
  assert.deepEqual(page.faults, []);
});
