// Many tabs of one browser at the real server:  NORMLABD=… NORMLAB=… node tabs.e2e.mjs
// HTTP/1.1 allows a browser six connections to a server, so eight tabs must not need eight streams.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { drawnPoints, openBrowser, seeCharts, until } from './browser.mjs';
import { RealServer } from './real_server.mjs';

const server = new RealServer({ script: 'steps_per_second=20' });
let run;
before(async () => {
  await server.start();
  run = await server.submit('watched by many', { steps: 100_000 });
  await until('a step', async () => (await server.stored(run.id)).length > 0);
});
after(() => server.end());

const lastDrawn = async (page) => (await drawnPoints(page, 'loss'))[0]?.at(-1)?.[0] ?? 0;

/** Opens tabs, each of which draws the run; a browser of its own, gone when test `t` is over. */
async function openTabs(t, count, prepare = () => undefined) {
  const browser = await openBrowser();
  t.after(() => browser.close());
  const address = server.loginAddress();
  const tabs = [];
  for (let index = 0; index < count; index++) {
    const page = await browser.newPage();
    await seeCharts(page);
    await prepare(page);
    // The first logs the browser in.
    await page.goto(index === 0 ? address : `${address.split('#')[0]}#/runs?sel=${run.id}`);
    await page.locator('.connection.live').waitFor();
    tabs.push(page);
  }
  return tabs;
}

/** Every tab draws points that are made only now. */
async function allAreLive(tabs) {
  const now = (await server.stored(run.id)).length;
  await until('new points in all tabs', async () => {
    const reached = await Promise.all(tabs.map(lastDrawn));
    return reached.every((step) => step > now + 10);
  });
}

/** What a tab draws are the stored points, each once and none missing. */
async function checkCurve(page) {
  const [drawn] = await drawnPoints(page, 'loss');
  const stored = await server.stored(run.id);
  assert.deepEqual(drawn, stored.slice(0, drawn.length));
}

test('eight tabs are live by one stream, whichever of them are closed', async (t) => {
  const tabs = await openTabs(t, 8);
  await allAreLive(tabs);
  assert.equal(await server.watchers(), 1);

  // The one that opened the stream, then all but one of the others.
  await tabs.shift().close();
  await allAreLive(tabs);
  assert.equal(await server.watchers(), 1);
  for (const page of tabs) await checkCurve(page);
  while (tabs.length > 1) await tabs.pop().close();
  await allAreLive(tabs);
  await checkCurve(tabs[0]);
  assert.equal(await server.watchers(), 1);
  assert.deepEqual(tabs[0].faults, []);

  await tabs.pop().close();
  await until('no stream without a tab', async () => (await server.watchers()) === 0);
});

test('without shared workers each tab has a stream of its own', async (t) => {
  const tabs = await openTabs(t, 3, (page) =>
    page.addInitScript(() => {
      delete globalThis.SharedWorker;
    }),
  );
  assert.equal(await tabs[0].evaluate(() => typeof SharedWorker), 'undefined');
  await allAreLive(tabs);
  assert.equal(await server.watchers(), 3);
  await tabs.shift().close();
  await until('its stream to end', async () => (await server.watchers()) === 2);
  await allAreLive(tabs);
  for (const page of tabs) {
    await checkCurve(page);
    assert.deepEqual(page.faults, []);
  }
});
