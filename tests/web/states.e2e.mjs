// What a page shows when there is nothing to show, when it cannot, and when its server is away, in every
// view:  NORMLABD=… NORMLAB=… node states.e2e.mjs ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import test from 'node:test';
import { takePictures, until } from './browser.mjs';
import { openFor, show } from './opened.mjs';
import { RealServer, tiny } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const server = new RealServer({ script: 'steps_per_second=20' });
const opened = openFor(server);
const pictures = (page, name) => takePictures(page, artefacts, name);
const absent = '01JZZZZZZZZZZZZZZZZZZZZZZZ';

test('who is not logged in is told how', async () => {
  const page = await opened.browser.newPage();
  await page.goto(`http://${server.http}/`);
  await page.getByText('normlab open').first().waitFor();
  await pictures(page, 'login');
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('an empty view says what would fill it', async () => {
  const page = await opened.page('#/runs');
  for (const [name, hash, words] of [
    ['runs', '#/runs', 'No runs yet'],
    ['compare', '#/compare', 'No runs are chosen'],
    ['queue', '#/queue', 'Nothing waits'],
  ]) {
    await show(page, hash);
    await page.getByText(words).waitFor();
    await pictures(page, `empty_${name}`);
  }
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('what is not there, and what is not understood, is said in words', async () => {
  await server.submit('the only one', { steps: 4 });
  const page = await opened.page('#/runs');
  for (const [name, hash, words] of [
    ['run', `#/runs/${absent}`, `There is no run ${absent}`],
    ['experiment', `#/experiments/${absent}`, `There is no experiment ${absent}`],
    ['submit', `#/submit?from=${absent}`, `There is no run ${absent}`],
    ['compare', `#/compare?runs=${absent},01JYYYYYYYYYYYYYYYYYYYYYYY`, '2 are not there any more'],
    ['search', '#/runs?sel=&filter=lr<1', 'no field "lr"'],
    ['nothing_found', '#/runs?sel=&filter=state=failed', 'No run is like that'],
  ]) {
    await show(page, hash);
    await page.getByText(words).first().waitFor();
    await pictures(page, `error_${name}`);
  }
  await page.close();
});

test('a view whose server is away keeps what it had, says since when, and comes back', async () => {
  const made = await server.api('POST', '/experiments', {
    displayName: 'widths',
    device: 'cpu',
    sweep: { base: { ...tiny, steps: 100_000 }, axes: [{ setting: 'seed', values: ['1', '2'] }] },
  });
  const [run] = made.runs;
  const sel = made.runs.map(({ id }) => id).join();
  const views = [
    ['runs', `#/runs?sel=${sel}`, '.table tr.run'],
    ['run', `#/runs/${run.id}`, '.head h1'],
    ['compare', `#/compare?runs=${sel}`, '.outcomes tbody tr'],
    ['experiment', `#/experiments/${made.id}`, '.outcomes tbody tr'],
    ['queue', '#/queue', 'table.devices tbody tr'],
    ['submit', `#/submit?from=${run.id}`, '#setting-layers'],
  ];
  await until('a step', async () => (await server.stored(run.id)).length > 5);
  const pages = new Map();
  for (const [name, hash, content] of views) {
    const page = await opened.page(hash);
    await page.locator(content).first().waitFor();
    pages.set(name, page);
  }
  await server.kill();
  for (const [name, , content] of views) {
    const page = pages.get(name);
    await page.bringToFront();
    await page.getByText('offline since').waitFor();
    assert.ok((await page.locator(content).count()) > 0, `${name}: what was there stays`);
    await pictures(page, `offline_${name}`);
  }
  await server.start();
  for (const [name] of views) {
    const page = pages.get(name);
    await page.bringToFront();
    await page.locator('.connection.live, .connection.behind').waitFor();
    await until(
      `${name}: no problem left`,
      async () => (await page.locator('.problem').count()) === 0,
    );
    await page.close();
  }
});
