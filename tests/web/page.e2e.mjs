// The page in a real browser against the fake server:  node page.e2e.mjs DIST ARTEFACTS
// What the real server cannot be made to do at will: break off, come back, diverge on a given step.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { drawnExtent, openBrowser, takePictures, until } from './browser.mjs';
import { articleRuns, FakeServer, scriptedRun } from './fake_server.mjs';

const [dist, artefacts] = process.argv.slice(2);
const blue = '#2563eb';
mkdirSync(artefacts, { recursive: true });

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

const experiment = { id: 'EXPARTICLE', displayName: 'article', preset: 'article', user: 'lab1' };

/** A fake server and a page, both gone when test `t` is over. */
async function open(t, options) {
  const fake = new FakeServer(dist, options);
  t.after(() => fake.stop());
  const port = await fake.listen();
  const page = await newPage(t);
  return { fake, port, page, address: `http://127.0.0.1:${port}/#code=once` };
}

async function newPage(t) {
  const page = await browser.newPage();
  t.after(() => page.close());
  return page;
}

const note = (page, series = 'loss') =>
  page.locator(`[data-series="${series}"] .points`).textContent({ timeout: 5000 });

test('a page shows runs that come later, takes the code out of its address and logs in', async (t) => {
  const { fake, address, page } = await open(t, { stepMilliseconds: 5 });
  await page.goto(address);
  await page.getByText('No runs yet').waitFor();
  assert.ok(!page.url().includes('code='), page.url());
  const runs = articleRuns(10, experiment.id);
  fake.add(experiment, runs);
  const training = fake.train(runs);
  await page.getByText('Pre-Norm · no warmup').waitFor();
  await training;
  await until('all points', async () => (await note(page)).includes('180 of 180 points each'));
  assert.equal(await page.locator('tr.run.selected').count(), 3);
  assert.ok((await drawnExtent(page, 'loss', blue)).columns > 300);
  assert.deepEqual(page.faults, []);
});

test('a page that loses its server keeps what it has, and comes back without gap or repeat', async (t) => {
  const { fake, port, address, page } = await open(t, { stepMilliseconds: 20 });
  const runs = articleRuns(20, experiment.id);
  fake.add(experiment, runs);
  await page.goto(address);
  await page.getByText('Pre-Norm · no warmup').waitFor();
  const training = fake.train(runs);
  await until('points', async () => /^[1-9]\d of/.test(await note(page)));
  const before = page.url();
  await fake.breakOff();
  await page.getByText('offline since').waitFor();
  assert.ok((await drawnExtent(page, 'loss', blue)).columns > 0, 'the old curve stays');
  await training;
  const back = Date.now();
  await fake.listen(port);
  await page.locator('.connection.live').waitFor({ timeout: 5000 });
  await until('the rest', async () => (await note(page)).includes('180 of 180 points each'), 5);
  assert.ok(Date.now() - back < 5000, 'back within five seconds');
  assert.equal(page.url(), before);
});

test('a page that is behind says how far', async (t) => {
  const { fake, address, page } = await open(t, { stepMilliseconds: 0 });
  const run = scriptedRun(
    25,
    'far ahead',
    '',
    { placement: 'pre', steps: '100' },
    Math.sqrt,
    Math.sqrt,
  );
  run.failAt = 88;
  fake.add(undefined, [run]);
  await page.goto(address);
  await page.locator('.connection.live').waitFor();
  await fake.train([run]);
  await until('points', async () => (await note(page)).includes('88 of 88 points'));
  fake.publish('run', {
    ...run.run,
    state: 'STATE_RUNNING',
    progress: { step: '500', steps: '900' },
  });
  await page.locator('.connection.behind', { hasText: '● 412 points behind' }).waitFor();
  await page.screenshot({ path: join(artefacts, 'behind.png') });
  const steps = Array.from({ length: 412 }, (_, index) => 89 + index);
  const loss = { steps, values: steps.map(Math.sqrt) };
  fake.publish('points', { run: run.run.id, attempt: 1, columns: { loss } });
  await page.locator('.connection.live').waitFor();
});

test('tabs share one stream, and each draws its own runs', async (t) => {
  const { fake, address, page: first } = await open(t, { stepMilliseconds: 15 });
  const runs = articleRuns(30, experiment.id);
  fake.add(experiment, runs);
  await first.goto(address);
  await first.getByText('Pre-Norm · no warmup').waitFor();
  const [one] = runs;
  const second = await newPage(t);
  await second.goto(`${address.split('#')[0]}#/runs?sel=${one.run.id}`);
  await second.getByText('Pre-Norm · no warmup').first().waitFor();
  await fake.train(runs);
  await until('both', async () => {
    const notes = [await note(first), await note(second)];
    return notes[0].includes('180 of 180 points each') && notes[1].endsWith('180 of 180 points');
  });
  assert.equal(fake.watchers.size, 1);
});

test('a diverged run is a gap with its step; markup in a name is text', async (t) => {
  const { fake, address, page } = await open(t, { stepMilliseconds: 0 });
  const name = '<img src=x onerror=alert(1)> & "quotes"';
  const bad = scriptedRun(
    40,
    name,
    '',
    { placement: 'post', steps: '180' },
    (step) => (step < 55 ? 4 : Number.NaN),
    (step) => (step < 55 ? step ** 2 : Infinity),
  );
  fake.add(undefined, [bad]);
  await page.goto(address);
  await page.locator('tr.run').waitFor();
  await fake.train([bad]);
  await page.getByText('diverged').first().waitFor();
  await until('the note', async () => (await note(page)).includes('55 of 55 points · ⚡'));
  assert.match(await note(page), /1 NaN, first at step 55/);
  assert.equal(await page.locator('tr.run .name').textContent(), name);
  assert.equal(await page.locator('#page img').count(), 0);
  assert.deepEqual(page.faults, []);
});

test('every view has an address, and remembers what it showed', async (t) => {
  const { fake, address, page } = await open(t, { stepMilliseconds: 0 });
  const runs = articleRuns(60, experiment.id);
  fake.add(experiment, runs);
  const views = page.getByRole('navigation', { name: 'Views' });
  const here = () => views.locator('[aria-current]').textContent();
  await page.goto(address);
  await page.locator('tr.run').first().waitFor();
  await page.locator('tr.run input').first().click(); // takes one of the three away
  await until('the choice in the address', () => page.url().split(',').length === 2);
  const runsAddress = page.url();
  for (const [name, hash] of [
    ['Compare', /#\/compare\?runs=\w+,\w+$/],
    ['Queue', /#\/queue$/],
    ['Submit', /#\/submit$/],
  ]) {
    await views.getByRole('link', { name }).click();
    await until(name, async () => (await here()) === name);
    assert.match(page.url(), hash);
    await until('the title', async () => (await page.title()).startsWith(`${name} · `));
    assert.equal(await page.locator('tr.run').count(), 0);
  }
  await views.getByRole('link', { name: 'Runs' }).click();
  await page.locator('tr.run').first().waitFor();
  assert.equal(page.url(), runsAddress);
  await page.goBack();
  await until('Submit', async () => (await here()) === 'Submit');
  await page.goto(`${address.split('#')[0]}#/runs/${runs[0].run.id}`);
  await until('Runs', async () => (await here()) === 'Runs');
  assert.ok(page.url().endsWith(`#/runs/${runs[0].run.id}`), page.url());
  await page.keyboard.press('/');
  await page.keyboard.type('loss<0.1');
  await page.keyboard.press('Enter');
  await until('the search', () => page.url().includes('#/runs?filter=loss'));
  assert.equal(await page.getByRole('searchbox').inputValue(), 'loss<0.1');
  assert.deepEqual(page.faults, []);
});

test('without a token the page says how to log in', async (t) => {
  const { port, page } = await open(t);
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.getByText('normlab open').first().waitFor();
  // A token that the server does not take: the same, and the bad one is forgotten.
  await page.getByLabel('Or paste a token').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('not logged in any more').waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem('normlab.token')), null);
});

test('every look is kept as a picture', async (t) => {
  const { fake, address, page } = await open(t, { stepMilliseconds: 8 });
  const runs = articleRuns(50, experiment.id);
  fake.add(experiment, runs);
  await page.goto(address);
  await page.getByText('Pre-Norm · no warmup').waitFor();
  await fake.train(runs.slice(0, 2));
  await takePictures(page, artefacts, 'runs');
});
