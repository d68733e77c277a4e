// Runs beside each other, and experiments, at the real server with scripted trainers:
//   NORMLABD=… NORMLAB=… node compare.e2e.mjs ARTEFACTS [STEPS] [BOUND]
// Twenty runs of STEPS steps (default 10,000) are opened in one picture. With a BOUND in milliseconds the
// page must show them sooner; without, the time is only printed, since a busy machine says nothing.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { drawnPoints, pngPixels, svgElements, takeAway, takePictures, until } from './browser.mjs';
import { openFor, show } from './opened.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts, longSteps = '10000', bound] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });
const steps = Number(longSteps);

const server = new RealServer({
  script: 'steps_per_second=0',
  // Of the last three seeds one goes another way, and two trains slowly enough to be watched.
  scriptBySeed: { 2: 'steps_per_second=20', 12: 'value=step' },
  options: ['--cpu-slots', '3'],
});
const opened = openFor(server, { acceptDownloads: true });

const open = opened.page;
const corner = (page, series = 'loss') =>
  page.locator(`[data-series="${series}"] .points`).textContent();

const pictures = (page, name) => takePictures(page, artefacts, name, { height: 1500 });

test('twenty runs are soon in one picture', async () => {
  const ids = [];
  for (let seed = 101; seed <= 120; seed++) {
    ids.push((await server.submit(`overlay ${seed}`, { steps, seed })).id);
  }
  for (const id of ids) {
    await until('its end', async () => (await server.api('GET', `/runs/${id}`)).endTime, 120);
  }
  const page = await open('#/runs');
  await show(page, `#/compare?runs=${ids}`);
  await page.reload();
  await until('twenty curves', async () => (await drawnPoints(page, 'loss')).length === 20);
  const total = new Intl.NumberFormat('en-US').format(steps);
  await until('their points', async () => (await corner(page)).includes(`${total}`));
  const shown = await until('all', () => page.evaluate(() => window.firstDrawn.loss));
  console.log(
    `20 runs of ${total} steps are drawn ${Math.round(shown)} ms after their page is asked for`,
  );
  writeFileSync(join(artefacts, 'overlay.json'), `${JSON.stringify({ steps, shown })}\n`);
  if (bound) assert.ok(shown < Number(bound), `${shown} ms, bound ${bound} ms`);
  assert.equal(await page.locator('.outcomes tbody tr').count(), 20);
  assert.equal(await server.watchers(), 1, 'event streams');
  if (steps > 4000) assert.match(await corner(page, 'difference-loss'), /of thinned curves/);
  await page.screenshot({ path: join(artefacts, 'overlay.png') });

  // A box of the table hides its line; the address says so.
  await page.locator('.outcomes tbody tr').first().locator('input').click();
  await until('one less', async () => (await drawnPoints(page, 'loss')).length === 19);
  assert.ok(page.url().includes(`hide=${ids[0]}`), page.url());
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('a page that loses its server has the same picture again when it is back', async () => {
  const ids = [];
  for (const name of ['one', 'two']) {
    ids.push((await server.submit(name, { steps: 100_000, seed: 2, checkpointEvery: 50 })).id);
  }
  const page = await open(`#/compare?runs=${ids}&smooth=0`);
  const drawn = () => drawnPoints(page, 'loss');
  await until('two curves', async () => {
    const lines = await drawn();
    return lines.length === 2 && lines.every((line) => line.length > 20);
  });
  const address = page.url();
  const rows = await page.locator('.outcomes tbody tr').allTextContents();
  await server.kill();
  await page.getByText('offline since').waitFor();
  const kept = await drawn();
  assert.ok(
    kept.every((line) => line.length > 20),
    'what was drawn stays',
  );
  await server.start();
  const back = Date.now();
  await page.locator('.connection.live, .connection.behind').waitFor({ timeout: 5_000 });
  await until(
    'more points',
    async () => (await drawn()).every((line, index) => line.length > kept[index].length + 10),
    5,
  );
  assert.ok(Date.now() - back < 5_000, 'back within five seconds');
  const lines = await drawn();
  for (const [index, id] of ids.entries()) {
    const stored = await server.stored(id);
    assert.deepEqual(lines[index], stored.slice(0, lines[index].length), 'no gap and no repeat');
  }
  assert.equal(page.url(), address);
  assert.equal((await page.locator('.outcomes tbody tr').allTextContents()).length, rows.length);
  for (const id of ids) {
    await server.api('POST', `/runs/${id}:cancel`, {});
    await server.ended(id);
  }
  await page.close();
});

test('seeds are one line with a band, and two runs have a difference', async () => {
  const ids = [];
  for (const seed of [11, 12, 13]) {
    ids.push((await server.submit(`seeds · seed ${seed}`, { steps: 40, seed })).id);
  }
  for (const id of ids) await server.ended(id);
  const page = await open(`#/compare?runs=${ids}&diff=${ids[1]},${ids[0]}`);
  await until('three curves', async () => (await drawnPoints(page, 'loss')).length === 3);
  // The second has the loss s at step s, and the others 4 / s.
  const difference = (
    await until(
      'the difference',
      async () =>
        (await drawnPoints(page, 'difference-loss'))[0]?.length === 40 &&
        (await drawnPoints(page, 'difference-loss')),
    )
  )[0];
  assert.deepEqual(
    difference,
    difference.map(([step]) => [step, step - 4 / step]),
  );
  // What each came to, and in which settings they differ.
  const heads = await page.locator('.outcomes thead th').allTextContents();
  const column = async (name) => {
    const at = heads.findIndex((head) => head.trim() === name);
    assert.ok(at > 0, `${name} in ${heads}`);
    return page
      .locator('.outcomes tbody tr')
      .evaluateAll((rows, at) => rows.map((row) => row.children[at].textContent), at);
  };
  assert.deepEqual(await column('seed'), ['11', '12', '13']);
  assert.ok(!heads.includes('layers'), 'which is the same in all');
  assert.deepEqual(await column('final loss'), ['0.100', '40.0', '0.100']);
  assert.deepEqual(await column('lowest loss'), ['0.100', '1.00', '0.100']);
  assert.deepEqual(await column('largest grad norm'), ['2.00', '20.0', '2.00']);
  assert.deepEqual(await column('final grad norm'), ['0.0500', '20.0', '0.0500']);
  assert.deepEqual(await column('first bad step'), ['', '', '']);

  // Whose difference it is, is in what is taken away.
  const csv = await takeAway(page, 'difference in loss (linear)', 'CSV');
  const rows = csv.content.toString().trim().split('\n');
  assert.equal(rows[0], 'run,minus,step,difference_loss');
  assert.equal(rows[4], 'seeds · seed 12,seeds · seed 11,4,3');
  const svg = await svgElements(
    page,
    (await takeAway(page, 'difference in loss (linear)', 'SVG')).content,
  );
  const legend = svg.map(([, , text]) => text.replaceAll(/[\u2068\u2069]/g, ''));
  assert.ok(legend.includes('seeds · seed 12 − seeds · seed 11'));
  const names = () => page.locator('.outcomes tbody th').allTextContents();
  const sort = page.getByRole('button', { name: 'final loss' });
  await sort.click();
  await until('rising', async () => (await names()).at(-1) === 'seeds · seed 12');
  await sort.click();
  await until('falling', async () => (await names())[0] === 'seeds · seed 12');
  assert.ok(page.url().includes('sort=-final_loss'), page.url());
  await sort.click();
  await until('as before', async () => (await names())[0] === 'seeds · seed 11');

  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'copy link' }).click();
  await page.getByText('the address of this view is copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());

  await page.getByLabel('seeds as median with band').check();
  await until(
    'a band',
    async () =>
      (await drawnPoints(page, 'loss')).length === 3 && page.url().includes('seeds=median'),
  );
  await until('one row', async () => (await page.locator('.outcomes tbody tr').count()) === 1);
  const [high, low, median] = await drawnPoints(page, 'loss');
  for (const [step, value] of median) assert.equal(value, 4 / step);
  for (const [step, value] of high) assert.equal(value, Math.max(step, 4 / step));
  for (const [step, value] of low) assert.equal(value, Math.min(step, 4 / step));
  assert.equal(await page.locator('.outcomes tbody th').textContent(), 'seeds · 3 seeds');
  await pictures(page, 'seeds');
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('a sweep is a table over two settings whose cells lead to their runs', async () => {
  const experiment = await server.api('POST', '/experiments', {
    displayName: 'depth',
    sweep: {
      base: { layers: 1, dModel: 8, heads: 2, vocabSize: 8, sequenceLength: 4, batchSize: 2 },
      axes: [
        { setting: 'steps', values: ['10', '20', '40'] },
        { setting: 'learning_rate', values: ['5e-4', '2e-3'] },
      ],
    },
  });
  for (const { id } of experiment.runs) await server.ended(id);
  const page = await open(`#/experiments/${experiment.id}`);
  const cells = page.locator('.sweep tbody td');
  await until('six cells', async () => (await cells.count()) === 6);
  assert.equal(await page.locator('.head h1').textContent(), 'depth');
  // 4 / steps, the last loss of each, in colours from dark to bright by its logarithm.
  const looks = () =>
    cells.evaluateAll((all) =>
      all.map((cell) => [cell.textContent, getComputedStyle(cell).backgroundColor]),
    );
  const [high, middle, low] = ['rgb(253, 231, 37)', 'rgb(33, 144, 140)', 'rgb(68, 1, 84)'];
  assert.deepEqual(await looks(), [
    ['0.400', high],
    ['0.400', high],
    ['0.200', middle],
    ['0.200', middle],
    ['0.100', low],
    ['0.100', low],
  ]);
  assert.match(await page.locator('.sweep .colours').textContent(), /^0\.1.*0\.4/);
  const csv = (await takeAway(page, 'sweep', 'CSV')).content.toString().trim().split('\n');
  assert.equal(csv.length, 7);
  assert.equal(csv[0], 'part,steps,learning_rate,final_loss,low,high,runs,names');
  assert.match(csv[3], /^,20,[^,]*,0.2,0.2,0.2,1,/);
  const svg = await svgElements(page, (await takeAway(page, 'sweep', 'SVG')).content);
  const fills = svg.flatMap(([kind, { fill, height }]) =>
    kind === 'rect' && height === '24' ? fill : [],
  );
  assert.deepEqual(
    [fills.length, fills[0], fills.at(-1), new Set(fills).size],
    [6, '#fde725', '#440154', 3],
  );
  const png = await takeAway(page, 'sweep', 'PNG');
  writeFileSync(join(artefacts, png.name), png.content);
  assert.ok((await pngPixels(page, png.content, '#fde725')).found > 1000);
  await until('six curves', async () => (await drawnPoints(page, 'loss')).length === 6);
  assert.ok(page.url().includes('sel='), 'what is drawn is in the address');
  await page.getByLabel('colour').selectOption('max_gradient_norm');
  await until('another number', async () => (await cells.first().textContent()) === '2.00');
  await pictures(page, 'sweep');
  await cells.nth(3).locator('a').click();
  await page.locator('main.run-page .head h1').waitFor();
  const wanted = experiment.runs.find(
    ({ spec }) => spec.steps === '20' && spec.learningRate === 0.002,
  );
  assert.ok(page.url().includes(wanted.id), page.url());
  await page.goBack();
  await until('the sweep', async () => (await cells.count()) === 6);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('settings that have no column are told with their values', async () => {
  const specs = [
    { layers: 1, dModel: 8, heads: 2, vocabSize: 8, sequenceLength: 4, batchSize: 2 },
    { layers: 2, dModel: 16, heads: 4, vocabSize: 16, sequenceLength: 8, batchSize: 4 },
  ];
  const runs = [];
  for (const [index, spec] of specs.entries()) {
    const more = { seed: 201 + index, learningRate: (index + 1) / 1000 };
    runs.push(await server.submit(`differs ${index}`, { steps: 5, ...spec, ...more }));
  }
  for (const { id } of runs) await server.ended(id);
  const page = await open(`#/compare?runs=${runs.map(({ id }) => id)}`);
  const note = page.locator('.outcomes > p');
  await until('the note', async () => /^Also differing: /.test(await note.textContent()));
  const heads = await page.locator('.outcomes thead th').allTextContents();
  const text = await note.textContent();
  const told = [...text.matchAll(/(\w+) ([\w.-]+), ([\w.-]*\w)/g)].map(([, ...parts]) => parts);
  const names = ['layers', 'd_model', 'heads', 'vocab_size', 'sequence_length', 'batch_size'];
  for (const name of [...names, 'seed', 'learning_rate']) {
    const inHeads = heads.includes(name);
    const found = told.find(([one]) => one === name);
    assert.ok(inHeads !== Boolean(found), `${name}: ${heads}; ${text}`);
    if (name === 'seed' && found) assert.deepEqual(found, ['seed', '201', '202']);
  }
  assert.equal(told.length, 2);
  const title = await page.locator('.outcomes tbody th').first().getAttribute('title');
  for (const [name, value] of told) assert.ok(title.includes(`${name}: ${value}`), title);
  await page.close();
});

test('without runs the page says how to choose some', async () => {
  const page = await open('#/compare');
  await page.getByText('No runs are chosen').waitFor();
  await page.close();
});
