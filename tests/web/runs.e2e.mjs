// The table of runs in a real browser at the real server:  NORMLABD=… NORMLAB=… node runs.e2e.mjs
// ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { before } from 'node:test';
import { seriousFaults, takePictures, until } from './browser.mjs';
import { openFor, show } from './opened.mjs';
import { RealServer, tiny } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const server = new RealServer({
  script: 'steps_per_second=20',
  scriptBySeed: { 2: 'nan_at=40', 3: 'throw_at=30', 4: '' },
});
const opened = openFor(server);
let page;
before(async () => {
  page = await opened.page('#/runs');
  await page.getByText('No runs yet').waitFor();
});

const row = (name) => page.locator('tr.run', { has: page.getByText(name, { exact: true }) });
const names = () => page.locator('tr.run .name').allTextContents();
const goTo = (hash) => show(page, hash);
const cell = async (name, column) => {
  const heads = await page.locator('.table thead th').allTextContents();
  const at = heads.findIndex((head) => head.trim() === column);
  assert.ok(at > 0, `${column} is none of ${heads}`);
  return row(name).locator('> *').nth(at);
};

test('runs are shown as they train and end, without asking again', async () => {
  await goTo('#/runs?sel=');
  await server.submit('long one', { steps: 100_000 });
  const bad = await server.submit('diverges', { steps: 60, seed: 2 });
  await server.ended(bad.id);
  await row('diverges').locator('.state.diverged').waitFor();
  await row('long one').locator('.state.running').waitFor();
  assert.match(await (await cell('diverges', 'note')).textContent(), /step 40/);
  await row('long one').locator('svg.sparkline path').waitFor({ state: 'attached' });

  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  const loss = async () => Number(await (await cell('long one', 'loss')).textContent());
  const path = () => row('long one').locator('svg.sparkline path').getAttribute('d');
  const [lossBefore, pathBefore] = [await loss(), await path()];
  await until('new numbers', async () => {
    return (await loss()) < lossBefore && (await path()) !== pathBefore;
  });
  assert.deepEqual(requests, [], 'numbers and curves came by the stream that was open');
});

test('selected runs are cancelled, tried again, labelled and archived, after a question', async () => {
  for (const name of ['first', 'second']) await server.submit(name, { steps: 50_000 });
  const strip = page.locator('.curves .strip');
  for (const name of ['first', 'second']) {
    await row(name).waitFor();
    await row(name).locator('input').click();
  }
  await strip.getByRole('button', { name: 'cancel', exact: true }).click();
  await strip.getByText('cancel 2 runs?').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('cancel 2 runs?').waitFor({ state: 'detached' });
  const { runs } = await server.api('GET', '/runs?filter=first%20OR%20second');
  assert.equal(runs.filter((run) => run.endTime).length, 0, 'nothing was cancelled yet');
  await strip.getByRole('button', { name: 'cancel', exact: true }).click();
  await strip.getByRole('button', { name: 'yes, cancel' }).click();
  await until('both ends', async () => (await page.locator('.state.cancelled').count()) >= 2);
  await page.locator('.said', { hasText: '2 runs cancelled' }).waitFor();

  await row('second').locator('input').click();
  await strip.getByRole('button', { name: 'retry' }).click();
  await strip.getByRole('button', { name: 'yes, retry' }).click();
  await until('it to wait or run', async () => {
    const text = await row('first').locator('.state').textContent();
    return /queued|starting|running/.test(text);
  });

  await strip.getByRole('button', { name: 'more' }).click();
  await strip.getByRole('textbox', { name: 'label' }).fill('<b>best</b> of all');
  await page.keyboard.press('Enter');
  await until('the label', async () => {
    const found = await server.api('GET', '/runs?filter=label%3D"<b>best</b> of all"');
    return found.runs.length === 1;
  });
  await strip.getByRole('button', { name: 'cancel', exact: true }).click();
  await strip.getByRole('button', { name: 'yes, cancel' }).click();
  await row('first').locator('.state.cancelled').waitFor();
  await strip.getByRole('button', { name: 'more' }).click();
  await strip.getByRole('button', { name: 'archive', exact: true }).click();
  await strip.getByRole('button', { name: 'yes, archive' }).click();
  await until('its row to go', async () => !(await names()).includes('first'));
  await goTo('#/runs?filter=archived=true&sel=');
  await until('it, asked for', async () => (await names()).join() === 'first');
});

test('what can be done with a run is at its row, by mouse and by keyboard, after a question', async () => {
  const { id } = await server.submit('at its row', { steps: 100_000 });
  await server.submit('beside it', { steps: 100_000 });
  await goTo('#/runs?sel=&flat=yes');
  await row('at its row').locator('.state.running').waitFor();
  const menu = page.getByRole('region', { name: 'what can be done with at its row' });
  await row('at its row').getByRole('button', { name: 'what can be done with' }).click();
  await menu.getByRole('textbox', { name: 'label' }).fill('<u>mine</u>');
  await page.keyboard.press('Enter');
  await page.locator('.said', { hasText: '1 run labelled' }).waitFor();
  await menu.waitFor({ state: 'detached' });
  assert.deepEqual((await server.api('GET', `/runs/${id}`)).labels, ['<u>mine</u>']);
  assert.equal(await page.locator('tr.run.selected').count(), 0, 'nothing was selected for it');

  // The keyboard is on the row, opens the menu, is asked once, and comes back to the row.
  const focused = () => page.evaluate(() => document.activeElement?.dataset.row);
  await until('the row', async () => (await focused()) === id);
  await page.keyboard.press('m');
  await menu.getByRole('button', { name: 'cancel', exact: true }).waitFor();
  const onCancel = () => page.evaluate(() => document.activeElement?.textContent === 'cancel');
  await until('the first of them', onCancel);
  assert.deepEqual(await seriousFaults(page), []);
  await page.screenshot({ path: join(artefacts, 'runs_row_menu.png') });
  await page.keyboard.press('Escape');
  await until('the row again', async () => (await focused()) === id);
  await page.keyboard.press('Shift+F10');
  await until('the first of them', onCancel);
  await page.keyboard.press('Enter');
  await menu.getByText('cancel 1 run?').waitFor();
  await until('the answer', () =>
    page.evaluate(() => document.activeElement?.textContent === 'yes, cancel'),
  );
  assert.equal((await server.api('GET', `/runs/${id}`)).endTime, undefined, 'not yet');
  await page.keyboard.press('Enter');
  await row('at its row').locator('.state.cancelled').waitFor();
  await until('the row', async () => (await focused()) === id);
  await page.keyboard.press('m');
  await menu.getByRole('button', { name: 'retry' }).waitFor();
  await page.mouse.click(400, 20);
  await until('it gone', async () => (await menu.count()) === 0);
  await row('beside it').locator('.state.running').waitFor();
});

test('axes and smoothing are chosen in the table of runs too, and are in its address', async () => {
  const { runs } = await server.api('GET', '/runs?filter="beside it"');
  await goTo(`#/runs?sel=${runs[0].id}`);
  const strip = page.locator('.curves .strip');
  await page.locator('[data-series="loss"]').getByText('loss (log)').waitFor();
  await strip.getByRole('combobox', { name: 'y axis' }).selectOption('linear');
  await page.locator('[data-series="loss"]').getByText('loss (linear)').waitFor();
  await strip.getByRole('combobox', { name: 'smoothing' }).selectOption({ index: 1 });
  assert.match(page.url(), /y=linear&smooth=\d+/);
  assert.equal(await strip.getByRole('combobox', { name: 'x axis' }).count(), 0);
  await strip.getByRole('combobox', { name: 'smoothing' }).selectOption('0');
  await strip.getByRole('combobox', { name: 'y axis' }).selectOption('log');
  assert.doesNotMatch(page.url(), /y=|smooth=/);
  await server.api('POST', `/runs/${runs[0].id}:cancel`, {});
  await server.ended(runs[0].id);
});

test('a run is paused, and goes on when it is resumed', async () => {
  const { id } = await server.submit('stop and go', { steps: 100_000, checkpointEvery: 10 });
  await goTo(`#/runs?sel=${id}`);
  await row('stop and go').locator('.state.running').waitFor();
  const strip = page.locator('.curves .strip');
  await strip.getByRole('button', { name: 'pause', exact: true }).click();
  await strip.getByRole('button', { name: 'yes, pause' }).click();
  await row('stop and go').locator('.state.paused').waitFor();
  await strip.getByRole('button', { name: 'resume' }).click();
  await row('stop and go').locator('.state.running').waitFor();
  await server.api('POST', `/runs/${id}:cancel`, {});
  await server.ended(id);
});

test('a filter is the server’s, in its words when it is wrong, and stays true', async () => {
  await goTo('#/runs?sel=');
  await page.keyboard.press('/');
  await page.keyboard.type('lr<1');
  await page.keyboard.press('Enter');
  const problem = page.locator('.list-bar .problem');
  await until('why not', async () => /no field "lr"/.test(await problem.textContent()));
  assert.ok((await names()).length > 0, 'what was listed stays');

  await page.getByRole('searchbox', { name: 'Search runs' }).fill('state=succeeded soon');
  await page.keyboard.press('Enter');
  await page.getByText('0 runs found').waitFor();
  await page.getByText('No run is like that').waitFor();
  const soon = await server.submit('soon there', { steps: 5, seed: 4 });
  await server.submit('not this one', { steps: 5, seed: 4 });
  await server.ended(soon.id);
  await row('soon there').waitFor();
  await page.getByText('1 run found').waitFor();
  assert.deepEqual(await names(), ['soon there']);
  await page.getByRole('button', { name: 'show all runs' }).click();
  await row('not this one').waitFor();
  assert.ok(!page.url().includes('filter'), page.url());
});

test('columns are chosen, ordered by, and part of the address', async () => {
  await goTo('#/runs?sel=&flat=yes');
  for (const layers of [3, 11, 7]) {
    await server.submit(`deep ${layers}`, { steps: 2, layers, seed: 4 });
  }
  await page.getByRole('button', { name: 'columns of the table' }).click();
  await page.getByRole('searchbox', { name: 'find a column' }).fill('width');
  await page.getByRole('checkbox', { name: 'd_model' }).check();
  await page.keyboard.press('Escape');
  assert.match(page.url(), /cols=placement,layers,learning_rate,d_model,step/);
  assert.equal(await (await cell('deep 3', 'width')).textContent(), String(tiny.dModel));
  const other = await opened.browser.newPage();
  await other.goto(page.url());
  await other.locator('.table thead th', { hasText: 'width' }).waitFor();
  await other.close();

  const deep = async () => (await names()).filter((name) => name.startsWith('deep'));
  await page.getByRole('button', { name: 'layers' }).click();
  await until('rising', async () => (await deep()).join() === 'deep 3,deep 7,deep 11');
  await page.getByRole('button', { name: 'layers' }).click();
  await until('falling', async () => (await deep()).join() === 'deep 11,deep 7,deep 3');
  assert.match(page.url(), /order=layers%20desc/);
  await server.submit('deep 9', { steps: 2, layers: 9, seed: 4 });
  await until('a new one in its place', async () =>
    (await deep()).join().startsWith('deep 11,deep 9,deep 7'),
  );
});

test('ten thousand runs scroll, and the keyboard goes anywhere', async () => {
  await goTo('#/runs?sel=&flat=yes');
  for (let sweep = 0; sweep < 10; sweep++) {
    const { runs } = await server.api('POST', '/experiments', {
      displayName: `sweep ${sweep}`,
      held: true,
      sweep: {
        base: { ...tiny, steps: 5 },
        axes: [{ setting: 'seed', range: { minimum: 1000, maximum: 1999, count: 1000 } }],
      },
    });
    assert.equal(runs.length, 1000);
  }
  await page.reload();
  await until('the count', async () =>
    /^10,0\d\d runs$/.test(await page.locator('.list-bar [role="status"]').textContent()),
  );
  assert.ok((await page.locator('.table tr').count()) < 80, 'only what is seen is in the page');

  // To the very end, page by page as the server gives them.
  const last = (await server.api('GET', '/runs?order_by=created&page_size=1')).runs[0];
  await until(
    'the oldest run',
    async () => {
      await page.locator('.table').evaluate((box) => {
        box.scrollTop = box.scrollHeight;
      });
      return (await names()).includes(last.displayName);
    },
    120,
  );
  assert.ok((await page.locator('.table tr').count()) < 80, 'still only what is seen');

  await page.locator('.table').evaluate((box) => {
    box.scrollTop = 0;
  });
  await page.locator('tr.run[tabindex="0"]').focus();
  const focused = () => page.evaluate(() => document.activeElement?.dataset.row);
  const ids = await page.locator('tr.run').evaluateAll((all) => all.map((one) => one.dataset.run));
  await until('the first row', async () => (await focused()) === ids[0]);
  await page.keyboard.press('ArrowDown');
  await until('the second row', async () => (await focused()) === ids[1]);
  await page.keyboard.press('Space');
  await until('it drawn', async () => page.url().includes(`sel=${ids[1]}`));
  await page.keyboard.press('PageDown');
  await until('further down', async () => ids.indexOf(await focused()) > 5);
  await page.keyboard.press('End');
  await until('the last', async () => (await focused()) === last.id);
  await page.keyboard.press('Home');
  await until('the first', async () => (await focused()) === ids[0]);
  await page.keyboard.press('Enter');
  await until('its page', async () => page.url().endsWith(`#/runs/${ids[0]}`));
  await page.goBack();
  await page.locator('tr.run').first().waitFor();
  assert.deepEqual(
    page.faults.filter((fault) => !fault.includes('400')),
    [],
  );
});

test('a thousand runs can be selected and changed at once; a hundred of them are drawn', async () => {
  await goTo('#/runs?filter=experiment="sweep 9"&sel=');
  await page.getByText('1,000 runs found').waitFor();
  const group = page.locator('tr.group', { hasText: 'sweep 9' });
  assert.match(await group.textContent(), /200 runs read so far: 200 queued/);
  // The others are read for it, whether somebody has scrolled through them or not.
  await group.locator('input').click();
  await page.locator('.said', { hasText: '1,000 runs selected' }).waitFor();
  assert.match(await group.textContent(), /1,000 runs: 1,000 queued/);
  const strip = page.locator('.curves .strip');
  await strip.getByText('the first 100 are drawn').waitFor();
  await page.locator('.connection.live').waitFor();
  await strip.getByRole('button', { name: 'more' }).click();
  await strip.getByRole('textbox', { name: 'label' }).fill('many');
  await page.keyboard.press('Enter');
  await page.locator('.said', { hasText: /label: \d+0 of 1,000 runs/ }).waitFor();
  // A thousand requests: how long they take says only how busy the machine is.
  await page.locator('.said', { hasText: '1000 runs labelled' }).waitFor({ timeout: 120_000 });
  const { totalSize } = await server.api('GET', '/runs?filter=label%3Dmany&page_size=1');
  assert.equal(totalSize, '1000');
  await page.locator('.connection.live').waitFor();
  await strip.getByRole('button', { name: 'clear' }).click();
  await until('none selected', async () => (await page.locator('tr.run.selected').count()) === 0);
});

test('every look is kept as a picture, and axe finds no serious fault', async () => {
  await server.api('POST', '/experiments', {
    preset: 'article',
    overrides: { ...tiny, steps: 400 },
  });
  const { runs } = await server.api('GET', '/runs?filter=experiment%3Darticle');
  await goTo(`#/runs?sel=${runs.map((run) => run.id).join()}`);
  await until('three curves', async () => (await page.locator('tr.run.selected').count()) === 3);
  await page.getByRole('button', { name: 'more that can be done' }).click();
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(artefacts, 'runs_menu.png') });
  assert.deepEqual(await seriousFaults(page), []);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'columns of the table' }).click();
  assert.deepEqual(await seriousFaults(page), []);
  await page.screenshot({ path: join(artefacts, 'runs_columns.png') });
  await page.keyboard.press('Escape');
  await takePictures(page, artefacts, 'runs_real');
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await seriousFaults(page), []);
});
