// Fifty runs that train while one page draws them all, for MINUTES (default .5):
//   NORMLABD=… NORMLAB=… node crowd.e2e.mjs ARTEFACTS [MINUTES]
// What the page holds in memory grows by less than 50 MB, and what the server sends it grows with the
// number of new points and with nothing else.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
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
  const looks = [];
  for (let look = 0; look < 3; look++) {
    if (look > 0) await page.waitForTimeout(half);
    const points = (await drawn()).reduce((sum, length) => sum + length);
    looks.push({ points, bytes: network.received, held: await heldBytes(session) });
  }
  await page.screenshot({ path: join(artefacts, 'crowd.png') });
  const [begin, middle, end] = looks;
  const perPoint = (from, to) => (to.bytes - from.bytes) / (to.points - from.points);
  const figures = {
    points: end.points - begin.points,
    bytesOfPoint: [perPoint(begin, middle), perPoint(middle, end)].map(Math.round),
    grown: end.held - begin.held,
    held: end.held,
  };
  console.log(
    `${runs} live runs for ${minutes} min: ${figures.points} points of loss, ` +
      `${figures.bytesOfPoint.join(' and then ')} bytes each, the page holds ` +
      `${(end.held / 1e6).toFixed(1)} MB, ${(figures.grown / 1e6).toFixed(1)} MB more than before`,
  );
  writeFileSync(join(artefacts, 'crowd.json'), `${JSON.stringify(figures)}\n`);

  assert.ok(
    figures.points > 0.5 * runs * stepsPerSecond * 60 * Number(minutes),
    `${figures.points}`,
  );
  assert.ok(figures.grown < mostGrowth, `${figures.grown} bytes more`);
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
