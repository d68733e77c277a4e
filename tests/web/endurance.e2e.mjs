// A page that stays open beside many live runs: what it takes of memory and of the network.
//   NORMLABD=… NORMLAB=… node endurance.e2e.mjs ARTEFACTS [SECONDS] [RUNS]
// RUNS (50) scripted runs at 4 steps a second are drawn for SECONDS (600) after a first minute, or a
// tenth of that if it is shorter. From then on the tab may grow by 50 MB at most, and each half of
// the time may cost the same bytes for each new point, within a fifth.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { drawnPoints, openBrowser, seeCharts, until } from './browser.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts, secondsText = '600', runsText = '50'] = process.argv.slice(2);
const [seconds, runCount] = [Number(secondsText), Number(runsText)];
const settling = Math.min(60, seconds / 10);
const largestGrowth = 50e6;
mkdirSync(artefacts, { recursive: true });

const server = new RealServer({
  script: 'steps_per_second=4',
  options: ['--cpu-slots', runsText],
});
const line = { bytes: 0 };
const proxy = net.createServer((browserSide) => {
  const [host, port] = server.http.split(':');
  const serverSide = net.connect(Number(port), host);
  serverSide.on('data', (data) => {
    line.bytes += data.length;
  });
  browserSide.pipe(serverSide).pipe(browserSide);
  for (const side of [browserSide, serverSide]) {
    side.on('error', () => {
      browserSide.destroy();
      serverSide.destroy();
    });
  }
});
let browser;
after(async () => {
  await browser?.close();
  proxy.close();
  await server.end();
});

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Memory of the tab and of the worker that has its stream, after a collection of garbage. */
async function memoryOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  const resident = browser
    .renderers()
    .map((pid) => Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]));
  return { heap: usedSize, resident: 1024 * resident.reduce((sum, one) => sum + one, 0) };
}

/** Steps made so far by all runs together. */
async function stepsMade() {
  const { runs } = await server.api('GET', '/runs?page_size=1000');
  return runs.reduce((sum, run) => sum + Number(run.progress?.step ?? 0), 0);
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

test('fifty live runs cost what their new points cost', async () => {
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  server.allowPort(proxy.address().port);
  await server.start();
  const ids = [];
  for (let index = 0; index < runCount; index++) {
    ids.push((await server.submit(`run ${index + 1}`, { steps: 1_000_000, seed: index })).id);
  }
  await until('all to run', async () => {
    const { runs } = await server.api('GET', '/runs?page_size=1000&states=RUNNING');
    return runs.length === runCount;
  });

  browser = await openBrowser();
  const page = await browser.newPage();
  await seeCharts(page);
  await page.goto(server.loginAddress().replace(server.http, `127.0.0.1:${proxy.address().port}`));
  await page.locator('.connection.live').waitFor();
  await page.evaluate((sel) => {
    location.hash = `#/runs?sel=${sel}`;
  }, ids.join());
  const drawn = async () => {
    const lines = await drawnPoints(page, 'loss');
    return lines.length === runCount && lines.every((points) => points.length > 0);
  };
  await until('all curves', drawn, 60);
  await pause(1000 * settling);

  const before = await memoryOf(page);
  const parts = [];
  for (let half = 0; half < 2; half++) {
    const [bytes, steps] = [line.bytes, await stepsMade()];
    await pause(500 * seconds);
    parts.push({ bytes: line.bytes - bytes, steps: (await stepsMade()) - steps });
  }
  const grown = await memoryOf(page);
  await page.screenshot({ path: join(artefacts, 'fifty-runs.png') });

  const perStep = parts.map(({ bytes, steps }) => bytes / steps);
  console.log(
    `heap ${megabytes(before.heap)} to ${megabytes(grown.heap)}, ` +
      `resident ${megabytes(before.resident)} to ${megabytes(grown.resident)}; ` +
      `${parts.map(({ steps }) => steps).join(' and ')} steps of ` +
      `${perStep.map((bytes) => bytes.toFixed(0)).join(' and ')} bytes`,
  );
  assert.ok(await drawn());
  const latest = (await drawnPoints(page, 'loss'))[0].at(-1)[0];
  const stored = (await server.stored(ids[0])).at(-1)[0];
  assert.ok(stored - latest < 20, `the page shows step ${latest} of ${stored}`);
  assert.ok(grown.heap - before.heap < largestGrowth, 'the heap grows');
  assert.ok(grown.resident - before.resident < largestGrowth, 'the processes grow');
  assert.ok(Math.abs(perStep[1] / perStep[0] - 1) < 0.2, 'the traffic grows');
  assert.deepEqual(page.faults, []);
});
