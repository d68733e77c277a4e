// A page that sleeps, loses its network or its server, while a run goes on; afterwards it draws
// exactly what is stored:  NORMLABD=… NORMLAB=… node sleep.e2e.mjs
import assert from 'node:assert/strict';
import test, { after, afterEach, before } from 'node:test';
import { drawnPoints, openBrowser, seeCharts, until } from './browser.mjs';
import { FlakyNetwork } from './flaky_network.mjs';
import { RealServer } from './real_server.mjs';

const server = new RealServer({ script: 'steps_per_second=20' });
const network = new FlakyNetwork();
let browser;
let page;
let run;

before(async () => {
  const port = await network.listen();
  server.allowPort(port);
  await server.start();
  network.forwardTo(server.http);
  run = await server.submit('goes on', { steps: 100_000 });
  browser = await openBrowser();
  page = await browser.newPage();
  await seeCharts(page);
  // All that the connection is said to be, one after the other.
  await page.addInitScript(() => {
    window.said = [];
    new MutationObserver(() => {
      const text = document.querySelector('.connection')?.textContent;
      if (text && text !== window.said.at(-1)) window.said.push(text);
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
  await page.goto(server.loginAddress().replace(server.http, `127.0.0.1:${port}`));
  await checkCurve();
});

after(async () => {
  await browser?.close();
  await server.end();
  await network.close();
});

afterEach(async () => {
  network.mend();
  await page.evaluate(() => {
    window.said = window.said.slice(-1);
  });
});

const milliseconds = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** The page is live and draws, of both series, every point stored until now, once. */
async function checkCurve() {
  await page.locator('.connection.live').waitFor();
  const count = (await server.stored(run.id)).length + 10;
  for (const series of ['loss', 'gradient_norm']) {
    await until(`${count} points`, async () => {
      const [points = []] = await drawnPoints(page, series);
      return points.length >= count;
    });
    const [drawn] = await drawnPoints(page, series);
    const stored = await server.stored(run.id, series);
    assert.deepEqual(drawn, stored.slice(0, drawn.length));
  }
}

const said = () => page.evaluate(() => window.said);

test('a network that goes away', async () => {
  const [before] = await drawnPoints(page, 'loss');
  network.cut();
  await page.getByText(/^● offline since \d\d:\d\d, retrying$/).waitFor();
  await milliseconds(3000);
  const [kept] = await drawnPoints(page, 'loss');
  assert.deepEqual(kept.slice(0, before.length), before, 'what was drawn stays');
  network.mend();
  await checkCurve();
  assert.equal((await said()).at(-1), '● live');
});

test('a page that is frozen', async () => {
  const session = await page.context().newCDPSession(page);
  await session.send('Page.setWebLifecycleState', { state: 'frozen' });
  await milliseconds(3000);
  await session.send('Page.setWebLifecycleState', { state: 'active' });
  await session.detach();
  await checkCurve();
});

test('a computer that sleeps: nothing of the page runs, and its connections are gone', async () => {
  const renderers = browser.renderers();
  assert.ok(renderers.length > 0, 'no process of the browser was found');
  for (const pid of renderers) process.kill(pid, 'SIGSTOP');
  try {
    await milliseconds(1000);
    network.cut();
    await milliseconds(2000);
    network.mend();
  } finally {
    for (const pid of renderers) process.kill(pid, 'SIGCONT');
  }
  await checkCurve();
});

test('a page that is stopped for a while, with its connections', async () => {
  const renderers = browser.renderers();
  for (const pid of renderers) process.kill(pid, 'SIGSTOP');
  await milliseconds(3000);
  for (const pid of renderers) process.kill(pid, 'SIGCONT');
  await checkCurve();
});

test('a server that is killed and started again, twice', async () => {
  for (let round = 0; round < 2; round++) {
    await server.kill('SIGKILL');
    await page.getByText('offline since').waitFor();
    await milliseconds(1000);
    await server.start();
    await checkCurve();
  }
  assert.deepEqual(
    (await said()).filter((text) => !/behind$/.test(text)).map((text) => text.slice(0, 9)),
    ['● live', '● offline', '● live', '● offline', '● live'],
  );
  const { attempts } = await server.api('GET', `/runs/${run.id}`);
  assert.equal(attempts.length, 1, 'the trainer was not disturbed');
});
