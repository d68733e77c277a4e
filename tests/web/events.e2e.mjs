// What happens to runs and to the server while a page looks on, against the fake server:
//   node events.e2e.mjs DIST ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import {
  cursorNote,
  drawnExtent,
  drawnPoints,
  openBrowser,
  putCursor,
  seeCharts,
  seriousFaults,
  until,
} from './browser.mjs';
import { FakeServer, scriptedRun } from './fake_server.mjs';

const [dist, artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

/** A fake server with some runs that have ended, and a page; both gone when test `t` is over. */
async function open(t, count, options = {}) {
  const fake = new FakeServer(dist, { stepMilliseconds: 0 });
  t.after(() => fake.stop());
  const port = await fake.listen();
  const runs = Array.from({ length: count }, (_, index) =>
    scriptedRun(100 + index, `run ${index + 1}`, '', { steps: '20' }, inverse, inverse, options),
  );
  fake.add(undefined, runs);
  if (options.train ?? true) await fake.train(runs);
  const page = await browser.newPage();
  t.after(() => page.close());
  await seeCharts(page);
  await page.goto(`http://127.0.0.1:${port}/#code=once`);
  await page.locator('.connection.live').waitFor();
  return { fake, port, page, runs };
}

const inverse = (step) => 1 / step;
const names = (page) => page.locator('tr.run .name').allTextContents();
const note = (page) => page.locator('[data-series="loss"] .points').textContent();

async function drawAll(page, runs) {
  await page.evaluate((sel) => {
    location.hash = `#/runs?sel=${sel}`;
  }, runs.map((one) => one.run.id).join());
  await until('all curves', async () => (await drawnPoints(page, 'loss')).length === runs.length);
  await until('their points', async () => (await note(page)).includes('20 of 20 points'));
}

test('a deleted run leaves table, charts and selection, also in a page that comes back', async (t) => {
  const { fake, port, page, runs } = await open(t, 3);
  await drawAll(page, runs);
  fake.remove(runs[1]);
  await until('its row to go', async () => (await names(page)).join() === 'run 3,run 1');
  await until('its curve to go', async () => (await drawnPoints(page, 'loss')).length === 2);
  assert.ok(!page.url().includes(runs[1].run.id), page.url());

  await fake.breakOff();
  await page.getByText('offline since').waitFor();
  fake.remove(runs[0]);
  await fake.listen(port);
  await page.locator('.connection.live').waitFor();
  await until('its row to go', async () => (await names(page)).join() === 'run 3');
  await until('its curve to go', async () => (await drawnPoints(page, 'loss')).length === 1);
  assert.ok(page.url().endsWith(`sel=${runs[2].run.id}`), page.url());
});

test('an archived run leaves the list, and is there for whoever has its address', async (t) => {
  const { fake, port, page, runs } = await open(t, 2);
  await drawAll(page, runs);
  runs[0].run = { ...runs[0].run, archived: true };
  fake.publish('run', runs[0].run);
  await until('its row to go', async () => (await names(page)).join() === 'run 2');
  assert.ok(!page.url().includes(runs[0].run.id), page.url());

  const other = await browser.newPage();
  t.after(() => other.close());
  await other.goto(`http://127.0.0.1:${port}/#/runs?sel=${runs[0].run.id}`);
  await until('it', async () => (await names(other)).includes('run 1'));
  await until('its curve', async () => (await note(other)).includes('20 of 20 points'));

  runs[0].run = { ...runs[0].run, archived: false };
  fake.publish('run', runs[0].run);
  await until('its row again', async () => (await names(page)).join() === 'run 2,run 1');
});

test('what is wrong with the server is said in its own words, until it is not', async (t) => {
  const { fake, port, page, runs } = await open(t, 1);
  await drawAll(page, runs);
  const notices = page.locator('.notices li');
  const problems = [
    'The disk has 40 MB left; free some, or runs will wait.',
    '<img src=x onerror=alert(1)> holds the database open (process 4711).',
  ];
  fake.publish('notice', { problems });
  await until('the notices', async () => (await notices.count()) === 2);
  assert.deepEqual(await notices.allTextContents(), problems);
  assert.equal(await page.locator('#page img').count(), 0);
  await page.screenshot({ path: join(artefacts, 'notices.png') });
  const later = await browser.newPage();
  t.after(() => later.close());
  await later.goto(`http://127.0.0.1:${port}/`);
  await until(
    'them in a tab opened later',
    async () => (await later.locator('.notices li').count()) === 2,
  );

  fake.publish('notice', { problems: problems.slice(0, 1) });
  await until('one left', async () => (await notices.count()) === 1);
  fake.publish('notice', { problems: [] });
  await until('none left', async () => (await page.locator('.notices').count()) === 0);
  assert.deepEqual([...page.faults, ...later.faults], []);
});

test('what cannot be read says why, and comes by itself', async (t) => {
  const { fake, port, runs } = await open(t, 1);
  const [one] = runs;
  // More runs than the event stream begins with: the first has to be asked for.
  const more = Array.from({ length: 200 }, (_, index) =>
    scriptedRun(200 + index, `more ${index}`, '', { steps: '20' }, inverse, inverse),
  );
  fake.add(undefined, more);
  fake.broken = new RegExp(`^/runs/${one.run.id}`);
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(`http://127.0.0.1:${port}/#code=once`);
  await page.locator('.connection.live').waitFor();
  await page.evaluate((id) => {
    location.hash = `#/runs/${id}`;
  }, one.run.id);
  const alert = page.getByRole('alert').filter({ hasText: 'The run could not be read' });
  await until('why', async () =>
    (await alert.textContent()).includes('the disk cannot be read; trying again'),
  );
  assert.equal(await page.locator('.connection.live').count(), 1);
  await page.evaluate((id) => {
    location.hash = `#/compare?runs=${id}`;
  }, one.run.id);
  await page.getByText('1 could not be read: the disk cannot be read; trying again').waitFor();
  await page.evaluate((id) => {
    location.hash = `#/runs/${id}`;
  }, one.run.id);
  fake.broken = /\/series$/;
  await page.locator('main.run-page').waitFor();
  await until(
    'why there is no curve',
    async () => (await note(page)) === 'could not be read: the disk cannot be read; trying again',
  );
  await page.screenshot({ path: join(artefacts, 'unreadable.png') });
  fake.broken = undefined;
  await until('the curve', async () => (await note(page)) === '20 of 20 points');
});

test('a profile marks what it has no place for, and counts it', async (t) => {
  const { fake, page } = await open(t, 1);
  const deep = scriptedRun(150, 'deep', '', { layers: '4', steps: '20' }, inverse, inverse);
  for (const [block, value] of [0.5, 'NaN', 0, 'Infinity'].entries()) {
    deep.points[`block/${block + 1}/gradient_norm`] = { steps: [5], values: [value] };
  }
  fake.add(undefined, [deep]);
  await fake.train([deep]);
  await page.evaluate((id) => {
    location.hash = `#/runs/${id}`;
  }, deep.run.id);
  const profile = page.locator('[data-profile="gradient_norm"]');
  const note = '2 of 4 not finite · 1 of 4 at or below zero';
  await until('the note', async () => (await profile.locator('.points').textContent()) === note);
  assert.equal(await profile.locator('circle').count(), 1);
  assert.deepEqual(await profile.locator('path > title').allTextContents(), [
    'deep, block 2: NaN',
    'deep, block 3: 0',
    'deep, block 4: ∞',
  ]);
  await profile.screenshot({ path: join(artefacts, 'profile_marks.png') });
});

test('over the time of training every run has its own step under the cursor', async (t) => {
  const { fake, page, runs } = await open(t, 2);
  const steps = Array.from({ length: 20 }, (_, index) => index + 1);
  for (const [index, milliseconds] of [10, 2].entries()) {
    runs[index].points.step_milliseconds = { steps, values: steps.map(() => milliseconds) };
  }
  await page.evaluate((ids) => {
    location.hash = `#/compare?runs=${ids}&by=time`;
  }, runs.map((one) => one.run.id).join());
  await until('both', async () => {
    const ends = (await drawnPoints(page, 'loss')).map((line) => line.at(-1)?.[0]);
    return ends.join() === '200,40';
  });
  // At 24 ms the second run is at step 12. The difference of both has no point there, and its own
  // cursor goes to step 2 of the first, at 20 ms; also when all are drawn anew.
  await putCursor(page, 'loss', 24);
  const rows = page.locator('.outcomes tbody tr');
  const seen = () =>
    rows.evaluateAll((all) => all.map((row) => row.querySelector('.at-cursor').textContent));
  await until('a value of each', async () => (await seen()).join() === '0.500,0.0833');
  const more = { loss: { steps: [21], values: [1] } };
  fake.publish('points', { run: runs[1].run.id, attempt: 1, columns: more });
  await until('a new point', async () => (await note(page)) === '41 of 41 points in 2 runs');
  assert.equal((await seen()).join(), '0.500,0.0833');
  assert.equal(
    (await cursorNote(page, 'loss', 'step 12')).replaceAll(/[\u2068\u2069]/g, ''),
    '0.500 (run 1, step 2), 0.0833 (run 2, step 12)',
  );
  assert.deepEqual(page.faults, []);
});

test('a page without its server says what to do, until it is back', async (t) => {
  const { fake, port, page, runs } = await open(t, 1);
  await drawAll(page, runs);
  await fake.breakOff();
  await page.getByText('start normlabd').waitFor();
  await page.screenshot({ path: join(artefacts, 'offline.png') });
  assert.deepEqual(await seriousFaults(page), []);
  assert.equal((await drawnPoints(page, 'loss'))[0].length, 20, 'what was drawn stays');
  await fake.listen(port);
  await page.locator('.connection.live').waitFor();
  await until('the hint to go', async () => (await page.getByText('start normlabd').count()) === 0);
});

test('a run that is tried again comes back to life, and what it left behind is faint', async (t) => {
  const { fake, page, runs } = await open(t, 1, { failAt: 16 });
  const [one] = runs;
  await until('its end', async () => (await note(page)).includes('16 of 16 points'));
  assert.deepEqual(await page.locator('tr.run .state').allTextContents(), ['✕failed']);
  one.loss = (step) => 3 / step;
  fake.retry(one, 8);
  await page.getByText('running').first().waitFor();
  await until('the curve cut back', async () => (await note(page)).includes('8 of 8 points'));
  for (let step = 9; step <= 12; step++) fake.step(one, step);
  await until('new points', async () => (await note(page)).includes('12 of 12 points'));
  const steps = (from, to, value) =>
    Array.from({ length: to - from + 1 }, (_, index) => [from + index, value(from + index)]);
  await until('both lines', async () => (await drawnPoints(page, 'loss')).length === 2);
  assert.deepEqual(await drawnPoints(page, 'loss'), [
    steps(9, 16, inverse),
    [...steps(1, 8, inverse), ...steps(9, 12, (step) => 3 / step)],
  ]);
  assert.ok((await drawnExtent(page, 'loss', '#2563eb')).columns > 0);
  await page.screenshot({ path: join(artefacts, 'retried.png') });
  for (let step = 13; step <= 20; step++) fake.step(one, step);
  await until('its end', async () => (await note(page)).includes('20 of 20 points'));
  assert.equal((await drawnPoints(page, 'loss')).length, 2);
  assert.deepEqual(page.faults, []);
});

test('a long list comes page by page as one scrolls, while runs are added, each once', async (t) => {
  const { fake, page } = await open(t, 450, { train: false });
  const add = (index, name) =>
    fake.add(undefined, [scriptedRun(index, name, '', { steps: '20' }, inverse, inverse)]);
  await page.getByText('450 runs', { exact: true }).waitFor();
  assert.ok((await page.locator('tr.run').count()) < 60, 'only rows that are seen are there');
  add(900, 'added 1');
  add(901, 'added 2');
  await page.getByText('452 runs', { exact: true }).waitFor();

  const seen = [];
  const isBottom = () =>
    page.locator('.table').evaluate((box) => {
      const isThere = box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
      box.scrollTop += box.clientHeight / 2;
      return isThere;
    });
  await until('the last row', async () => {
    const rows = await page
      .locator('tr.run')
      .evaluateAll((all) => all.map((row) => [Number(row.ariaRowIndex), row.dataset.run]));
    for (const [index, id] of rows) seen[index] = id;
    if (seen.length === 300) add(902, 'added 3');
    return (await isBottom()) && rows.some(([, id]) => id === [...fake.runs.keys()].sort()[0]);
  });
  await page.locator('.table').evaluate((box) => {
    box.scrollTop = 0;
  });
  if (fake.runs.size === 452) add(902, 'added 3');
  await page.getByText('453 runs', { exact: true }).waitFor();
  const table = page.locator('table');
  await until('its length', async () => (await table.getAttribute('aria-rowcount')) === '454');
  assert.equal(new Set(seen.filter(Boolean)).size, 452);
  assert.deepEqual(page.faults, []);
});
