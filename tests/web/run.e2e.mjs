// The view of one run, at the real server:
//   NORMLABD=… NORMLAB=… node run.e2e.mjs ARTEFACTS [STEPS] [BOUND]
// A run of STEPS steps (default 1,000,000) is opened. With a BOUND in milliseconds the page must show
// it sooner; without, the time is only printed, since a busy machine says nothing.
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import {
  cursorNote,
  drawnPoints,
  pngPixels,
  putCursor,
  svgElements,
  takeAway,
  takePictures,
  until,
} from './browser.mjs';
import { openFor, show } from './opened.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts, longSteps = '1000000', bound] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const steps = Number(longSteps);
const spike = Math.round(0.654321 * steps);
const scripted = new RealServer({
  script: `spike_at=${spike}`,
  scriptBySeed: { 2: 'steps_per_second=20', 3: 'steps_per_second=500,nan_at=40' },
});
const training = new RealServer();
const opened = openFor([scripted, training], { acceptDownloads: true });
const open = (server, hash) => opened.page(hash, server);
const corner = (page, series = 'loss') =>
  page.locator(`[data-series="${series}"] .points`).textContent();
/** Whether there is a ring around a point of the chart of the loss, by the pixels on its circle. */
const ringAt = (page, x, y) =>
  page.evaluate(
    ([x, y]) => {
      const plot = window.charts.loss;
      const [left, top] = [plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true)];
      const isDrawn = (turn) => {
        const radius = 5 * devicePixelRatio;
        const at = [left + radius * Math.cos(turn), top + radius * Math.sin(turn)].map(Math.round);
        const { data } = plot.ctx.getImageData(at[0] - 1, at[1] - 1, 3, 3);
        return data.some((value, index) => index % 4 === 3 && value > 100);
      };
      // Between the directions in which a line may go on.
      return [0.25, 0.75, 1.25, 1.75].every((half) => isDrawn(half * Math.PI));
    },
    [x, y],
  );
const inside = (points, from, to) => points.filter(([step]) => step >= from && step <= to);

test('a long run is soon there, with its spike, and a zoom has every point', async () => {
  const { id } = await scripted.submit('long', { steps });
  await until('its end', async () => (await scripted.api('GET', `/runs/${id}`)).endTime, 240);
  const page = await open(scripted, '#/runs');
  await show(page, `#/runs/${id}`);
  // From an address typed in: nothing of it is here yet.
  await page.reload();
  const total = new Intl.NumberFormat('en-US').format(steps);
  await until('the curve', async () => (await corner(page)).startsWith(`${total} points, `));
  const shown = await page.evaluate(() => window.firstDrawn.loss);
  console.log(
    `a run of ${total} steps is drawn ${Math.round(shown)} ms after its page is asked for`,
  );
  writeFileSync(join(artefacts, 'open.json'), `${JSON.stringify({ steps, shown })}\n`);
  if (bound) assert.ok(shown < Number(bound), `${shown} ms, bound ${bound} ms`);

  assert.match(await corner(page), /points, [\d,]+ drawn, extremes kept/);
  const [line] = await drawnPoints(page, 'loss');
  assert.equal(new Map(line).get(spike), 100 * (4 / spike), 'the spike is one of the points drawn');
  const pixels = await page.evaluate(
    ({ spike, value }) => {
      const plot = window.charts.loss;
      const at = (x, y) =>
        [plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true)].map(Math.round);
      const [x, top] = at(spike, value);
      const { data } = plot.ctx.getImageData(
        x - 2,
        top,
        5,
        Math.max(1, at(spike, value / 50)[1] - top),
      );
      let drawn = 0;
      for (let index = 3; index < data.length; index += 4) if (data[index] > 100) drawn++;
      return drawn;
    },
    { spike, value: 100 * (4 / spike) },
  );
  assert.ok(pixels > 20, `the spike is ${pixels} pixels of the picture`);
  assert.ok(await until('a ring', () => ringAt(page, spike, 100 * (4 / spike))));
  assert.ok(!(await ringAt(page, spike / 2, 8 / spike)), 'no ring where nothing jumped');
  await page.screenshot({ path: join(artefacts, 'run_long.png') });

  const all = await takeAway(page, 'loss (log)', 'CSV');
  assert.equal(all.name, 'loss-thinned.csv');
  assert.equal(all.content.toString().trim().split('\n').length, 1 + line.length);

  const from = spike - 40;
  await show(page, `#/runs/${id}?x=${from}..${from + 99}`);
  await until('every point', async () => (await corner(page)) === '100 of 100 points');
  await until(
    'their line',
    async () => inside((await drawnPoints(page, 'loss'))[0], from, from + 99).length === 100,
  );
  const [zoomed] = await drawnPoints(page, 'loss');
  const { columns } = await scripted.api(
    'GET',
    `/runs/${id}/series?names=loss&from=${from}&to=${from + 99}`,
  );
  assert.deepEqual(
    inside(zoomed, from, from + 99),
    columns.loss.steps.map((step, index) => [step, columns.loss.values[index]]),
  );
  assert.ok(await ringAt(page, spike, 100 * (4 / spike)), 'a ring around the spike');
  // Under the cursor is the point of the picture, and not the last one that a thinned curve has.
  const text = (step) => new Intl.NumberFormat('en-US').format(step);
  const number = (value) => (value < 1e-4 ? value.toExponential(2) : value.toPrecision(3));
  const before = number(4 / (spike - 1));
  await putCursor(page, 'loss', spike - 1);
  await cursorNote(page, 'loss', `step ${text(spike - 1)}: ${before}`);
  await putCursor(page, 'loss', spike);
  await cursorNote(page, 'loss', `step ${text(spike)}: ${number(400 / spike)}`);
  // What is taken away is what is seen, and its name says which steps it has.
  const csv = await takeAway(page, 'loss (log)', 'CSV');
  assert.equal(csv.name, `loss-steps-${from}-${from + 99}.csv`);
  const rows = csv.content.toString().trim().split('\n').slice(1);
  assert.deepEqual(
    rows,
    columns.loss.steps.map((step, index) => `long,${step},${columns.loss.values[index]}`),
  );
  await page.screenshot({ path: join(artefacts, 'run_zoomed.png') });
  await show(page, `#/compare?runs=${id}&x=${from}..${from + 99}`);
  await until('every point', async () => (await corner(page)) === '100 of 100 points');
  await putCursor(page, 'loss', spike - 1);
  const cell = page.locator('.outcomes tbody td.at-cursor').first();
  await until('the value', async () => (await cell.textContent()) === before);
  await show(page, `#/runs?sel=${id}&x=${from}..${from + 99}`);
  await until('every point', async () => (await corner(page)) === '100 of 100 points');
  await putCursor(page, 'loss', spike - 1);
  const row = page.locator('tr.run td.value').first();
  await until('the value', async () => (await row.textContent()) === before);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('charts are zoomed by dragging, moved in by keys, and leave the wheel to the page', async () => {
  const { id } = await scripted.submit('short', { steps: 100, seed: 7 });
  await scripted.ended(id);
  const page = await open(scripted, `#/runs/${id}`);
  await until('the curve', async () => (await corner(page)) === '100 of 100 points');
  const over = page.locator('[data-series="loss"] .u-over');
  const box = await over.boundingBox();
  const across = (share) => box.x + share * box.width;
  await page.mouse.move(across(0.2), box.y + 60);
  await page.mouse.down();
  await page.mouse.move(across(0.4), box.y + 60, { steps: 4 });
  await page.mouse.up();
  await until('a zoom', async () => /x=(19|20|21)\.\.(39|40|41)/.test(page.url()));
  await until('its count', async () => /^2[0-3] of 2[0-3] points$/.test(await corner(page)));
  // Both charts, since they share their axis.
  const ranges = await page.evaluate(() =>
    ['loss', 'gradient_norm'].map((name) => window.charts[name].scales.x.min),
  );
  assert.equal(ranges[0], ranges[1]);
  // Without a mouse: the cursor stays in the range, and the range is zoomed around it.
  await page.mouse.move(2, 2);
  const zoomNow = () => /x=(\d+)\.\.(\d+)/.exec(page.url())?.slice(1).map(Number);
  const [from, to] = zoomNow();
  const plot = page.locator('[data-series="loss"] .plot');
  await plot.focus();
  await page.keyboard.press('ArrowRight');
  await cursorNote(page, 'loss', `step ${from}: `);
  await page.keyboard.press('PageDown');
  await page.keyboard.press('ArrowRight');
  await cursorNote(page, 'loss', `step ${from + 1}: `);
  for (let pressed = 0; pressed < 4; pressed++) await page.keyboard.press('PageUp');
  await cursorNote(page, 'loss', `step ${to}: `);
  await page.keyboard.press('+');
  await until('half of it', async () => {
    const [left, right] = zoomNow();
    return right === to && Math.abs(right - left - (to - from) / 2) <= 1;
  });
  await cursorNote(page, 'loss', `step ${to}: `);
  await page.keyboard.press('-');
  await until('as before', async () => Math.abs(zoomNow()[0] - from) <= 2);
  await page.keyboard.press('Escape');
  await until('all of it', async () => !page.url().includes('x='));
  await show(page, `#/runs/${id}?x=20..40`);
  await until('a zoom', async () => /^21 of 21 points$/.test(await corner(page)));
  await over.dblclick();
  await until('all of it', async () => !page.url().includes('x='));

  const view = page.locator('main.run-page');
  const before = await view.evaluate((element) => element.scrollTop);
  await page.mouse.wheel(0, 200);
  await until('the page to scroll', async () => (await view.evaluate((e) => e.scrollTop)) > before);
  assert.ok(!page.url().includes('x='), 'the wheel zooms nothing');
  await view.evaluate((element) => element.scrollTo(0, 0));

  await page.mouse.move(2, 2);
  await page.locator('[data-series="loss"] .plot').focus();
  await page.keyboard.press('ArrowRight');
  await until('the first step', async () =>
    (await page.locator('.tools').first().textContent()).includes('step 1'),
  );
  await page.keyboard.press('PageUp');
  await until('ten further', async () =>
    (await page.locator('.tools').first().textContent()).includes('step 11'),
  );
  // The cursor of the other chart is at the same step.
  const synced = await page.evaluate(() => {
    const plot = window.charts.gradient_norm;
    return Math.round(plot.posToVal(plot.cursor.left, 'x'));
  });
  assert.equal(synced, 11);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('axes, smoothing and tokens are in the address and in the picture', async () => {
  const { id } = await scripted.submit('looks', { steps: 100, seed: 3, stopOnNonFinite: false });
  await scripted.ended(id);
  const page = await open(scripted, `#/runs/${id}?y=linear&smooth=10`);
  await until('the curve', async () => (await corner(page)).startsWith('100 of 100 points'));
  const [raw, smooth] = await drawnPoints(page, 'loss');
  assert.equal(raw.length, 100);
  assert.equal(new Map(raw).get(40), null);
  assert.equal(new Map(smooth).get(40), null, 'a gap where there is no number');
  assert.ok(
    smooth.every(([step, value]) => step === 40 || value > 0),
    'NaN spoils no other step',
  );
  assert.match(await page.locator('.bad-step').textContent(), /step 40/);
  await page.getByLabel('x axis').selectOption('tokens');
  await until('the address', async () => page.url().includes('by=tokens'));
  // 2 sequences of 4 tokens a step.
  await until('tokens', async () => (await drawnPoints(page, 'loss'))[1].at(-1)[0] === 800);
  await page.getByLabel('smoothing').selectOption('0');
  await until('one line', async () => (await drawnPoints(page, 'loss')).length === 1);
  await page.screenshot({ path: join(artefacts, 'run_tokens.png') });

  const take = (kind) => takeAway(page, 'loss (linear)', kind);
  const csv = await take('CSV');
  assert.equal(csv.name, 'loss.csv');
  const rows = csv.content.toString().trim().split('\n');
  assert.equal(rows[0], 'run,step,loss');
  assert.equal(rows.length, 101);
  assert.equal(rows[40], 'looks,40,NaN');
  // The picture stands alone: title, whose line it is, and what is not to be seen in it.
  const svg = await svgElements(page, (await take('SVG')).content);
  const texts = svg.filter(([name]) => name === 'text').map(([, , text]) => text);
  for (const text of ['loss (linear)', 'looks']) assert.ok(texts.includes(text), `${texts}`);
  assert.match(texts.at(-1), /^over tokens · 100 of 100 points · .*1 NaN, first at step 40$/);
  const [, { stroke }] = svg.find(([, { 'stroke-linecap': caps }]) => caps === 'round');
  const lines = svg.filter(([, it]) => it.stroke === stroke && it['stroke-linecap'] === 'round');
  assert.equal(lines.length, 1);
  assert.equal(lines[0][1].d.match(/[ML]/g).length, 99, 'a point each, but for NaN');
  assert.equal(lines[0][1].d.match(/M/g).length, 2, 'and a gap there');
  const picture = await take('PNG');
  writeFileSync(join(artefacts, picture.name), picture.content);
  const png = await pngPixels(page, picture.content, stroke, 2 * 394);
  const [, { width, height }] = svg[0];
  assert.deepEqual([png.width, png.height], [2 * width, 2 * height]);
  assert.ok(png.found > 20, `${png.found} pixels of the line in the legend`);

  const waiting = page.waitForEvent('download');
  await page.getByRole('button', { name: 'export this run' }).click();
  await page.getByRole('button', { name: 'CSV of all points' }).click();
  const all = readFileSync(await (await waiting).path(), 'utf8')
    .trim()
    .split('\n');
  assert.equal(all[0], 'run,step,loss,gradient_norm,learning_rate,spike');
  assert.equal(all.length, 101);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('a run is paused, resumed and cancelled from its page', async () => {
  const { id } = await scripted.submit('moved', { steps: 100_000, seed: 2 });
  const page = await open(scripted, `#/runs/${id}`);
  const state = (word) => page.locator('.head .state', { hasText: word }).waitFor();
  await state('running');
  const press = (name) => page.getByRole('button', { name, exact: true }).click();
  await press('pause');
  await press('yes, pause');
  await state('paused');
  await press('resume');
  await state('running');
  await until(
    'a second attempt',
    async () => (await page.locator('.attempts tbody tr').count()) === 2,
  );
  // The log of each attempt, as its trainer writes it; the second still does.
  const logOf = (attempt) => join(scripted.folder, 'attempts', `${id}-${attempt}`, 'log');
  const log = page.locator('.log');
  writeFileSync(logOf(1), 'the first one <b>says</b>\nso\n');
  appendFileSync(logOf(2), 'the second begins\n');
  await log.scrollIntoViewIfNeeded();
  await until('its log', async () => (await log.textContent()).endsWith('the second begins\n'));
  appendFileSync(logOf(2), 'and goes on\n');
  await until('its growth', async () =>
    (await log.textContent()).endsWith('the second begins\nand goes on\n'),
  );
  await page.locator('.fold', { has: log }).locator('select').selectOption('1');
  await until(
    'the log of the first',
    async () => (await log.textContent()) === 'the first one <b>says</b>\nso\n',
  );
  assert.equal(await log.locator('b').count(), 0);
  assert.ok(page.url().includes('log=1'), 'the address says which');
  await press('probe');
  await until('a probe', async () =>
    Object.hasOwn((await scripted.api('GET', `/runs/${id}/series?names=log_z`)).columns, 'log_z'),
  );
  await press('cancel');
  await press('no');
  await state('running');
  await press('cancel');
  await press('yes, cancel');
  await state('cancelled');
  assert.equal((await scripted.api('GET', `/runs/${id}`)).state, 'STATE_CANCELLED');
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('blocks, settings and log of a run that really trains', async () => {
  const { id } = await training.submit('small <b>model</b>', {
    layers: 4,
    steps: 60,
    placement: 'post',
    diagnoseEvery: 5,
    probeEvery: 30,
    vocabSize: 16,
    sequenceLength: 8,
    dModel: 16,
  });
  const page = await open(training, `#/runs/${id}`);
  await page.evaluate(() => {
    addEventListener('painted', ({ detail }) => {
      window.heatmap = detail.grid;
    });
  });
  await training.ended(id);
  await page.locator('.head .state', { hasText: 'succeeded' }).waitFor();
  const measured = [1, ...Array.from({ length: 12 }, (_, index) => 5 * (index + 1))];
  const names = Array.from({ length: 4 }, (_, block) => `block/${block + 1}/gradient_norm`);
  const { columns } = await training.api('GET', `/runs/${id}/series?names=${names}`);
  const grid = await until('the heatmap', () =>
    page.evaluate(
      (count) => window.heatmap?.steps.length === count && window.heatmap,
      measured.length,
    ),
  );
  assert.deepEqual(grid.steps, measured);
  assert.deepEqual(
    grid.values,
    names.flatMap((name) => columns[name].values),
  );

  // What is at a step: the third block at step 30, by keys and by its picture.
  const dots = () => page.locator('[data-profile="gradient_norm"] circle title').allTextContents();
  await page.locator('[data-profile="gradient_norm"] input[type=range]').fill('6');
  await until('the step', async () => page.url().includes('at=30'));
  assert.deepEqual(
    (await dots()).map((text) => [text.replace(/: .*/, ''), Number(text.replace(/.*: /, ''))]),
    names.map((name, block) => {
      const at = columns[name].steps.indexOf(30);
      const value = Number(columns[name].values[at].toPrecision(3));
      return [`small <b>model</b>, block ${block + 1}`, value];
    }),
  );
  const heatmap = page.locator('[data-blocks="gradient_norm"] .plot');
  const box = await heatmap.boundingBox();
  await heatmap.click({ position: { x: box.width - 28, y: 20 } });
  await until('the last step', async () => page.url().includes('at=60'));

  // Pictures that stand alone: with their titles, whose they are, and what their colours mean.
  const textsIn = (svg) => svg.filter(([kind]) => kind === 'text').map(([, , text]) => text);
  for (const [title, titleText, note] of [
    [
      'gradient norm by block',
      /^gradient norm by block: small <b>model<\/b>$/,
      /4 blocks × 13 steps/,
    ],
    ['gradient norm over blocks', /^gradient norm over blocks at step 60$/, /^over blocks/],
  ]) {
    const svg = await svgElements(page, (await takeAway(page, title, 'SVG')).content);
    const [, { width, height }] = svg[0];
    const texts = textsIn(svg);
    assert.match(texts.find((text) => titleText.test(text)) ?? `${texts}`, titleText);
    assert.match(texts.at(-1), note);
    if (title.endsWith('blocks')) {
      assert.ok(texts.includes('small <b>model</b>'), `${texts}`);
      assert.equal(svg.filter(([kind]) => kind === 'circle').length, 4);
    } else {
      const cells = svg.filter(([kind, { fill }]) => kind === 'rect' && /^#/.test(fill ?? ''));
      assert.ok(cells.length >= 4 * 13 + 32, `${cells.length} cells and parts of the bar`);
      assert.ok(
        texts.some((text) => text.endsWith(' (log)')),
        `${texts}`,
      );
    }
    const picture = await takeAway(page, title, 'PNG');
    writeFileSync(join(artefacts, picture.name), picture.content);
    const png = await pngPixels(page, picture.content, '#ffffff');
    assert.deepEqual([png.width, png.height], [2 * width, 2 * height].map(Math.floor));
    assert.ok(png.found > 0.1 * png.width * png.height, 'on the background of the page');
    const csv = (await takeAway(page, title, 'CSV')).content.toString();
    assert.match(csv, /^run,.*gradient_norm\nsmall <b>model<\/b>,/);
  }

  await page.getByLabel('quantity by block').selectOption('jacobian_gain');
  await until('probes', async () =>
    (await page.locator('[data-blocks="jacobian_gain"] .points').textContent()).includes('3 steps'),
  );
  for (const metric of ['update_ratio', 'stream_rms']) {
    const series = names.map((name) => name.replace('gradient_norm', metric));
    const wanted = (await training.api('GET', `/runs/${id}/series?names=${series}`)).columns;
    await page.getByLabel('quantity by block').selectOption(metric);
    await page.locator(`[data-blocks="${metric}"]`).waitFor();
    const values = series.flatMap((name) => wanted[name].values);
    await until(`the heatmap of ${metric}`, () =>
      page.evaluate(
        (all) => JSON.stringify(window.heatmap?.values) === all,
        JSON.stringify(values),
      ),
    );
  }

  for (const name of ['learning_rate', 'tokens_per_second']) {
    const [line] = await drawnPoints(page, name);
    assert.deepEqual(line, await training.stored(id, name), name);
  }
  // Over the time of training: where a step ends is the sum of what the steps took until then.
  await page.getByLabel('x axis').selectOption('time');
  const took = await training.stored(id, 'step_milliseconds');
  const total = took.reduce((sum, [, milliseconds]) => sum + milliseconds, 0);
  await until('time', async () => {
    const [line] = await drawnPoints(page, 'loss');
    return line.length === 60 && Math.abs(line.at(-1)[0] / total - 1) < 1e-9;
  });
  assert.ok(page.url().includes('by=time'), page.url());
  const [byTime] = await drawnPoints(page, 'loss');
  assert.deepEqual(
    byTime.map(([, value]) => value),
    (await training.stored(id)).map(([, value]) => value),
  );
  await page.getByLabel('x axis').selectOption('step');

  const attemptLog = join(training.folder, 'attempts', `${id}-1`, 'log');
  await page.locator('.log').scrollIntoViewIfNeeded();
  await until(
    'the log',
    async () => (await page.locator('.log').textContent()) === readFileSync(attemptLog, 'utf8'),
  );
  const differing = await page.locator('.settings tr.differs th').allTextContents();
  assert.ok(differing.includes('placement') && differing.includes('layers'), `${differing}`);
  assert.ok(!differing.includes('final_norm'), 'what follows from others is no choice');
  await page.getByRole('button', { name: 'show all', exact: true }).click();
  await until('all of them', async () => page.url().includes('settings=all'));
  const all = await page.locator('.settings tbody th').allTextContents();
  assert.ok(all.includes('weight_decay') && all.length > differing.length, `${all}`);
  await page.getByRole('button', { name: 'show what differs' }).click();
  assert.equal(await page.locator('.head h1').textContent(), 'small <b>model</b>');
  await page.locator('.page').evaluate((box) => box.scrollTo(0, 0));
  await takePictures(page, artefacts, 'run', { height: 1700 });
  assert.deepEqual(page.faults, []);
  await page.close();
});

test('a run that is not there says so', async () => {
  const page = await open(scripted, '#/runs/01JZZZZZZZZZZZZZZZZZZZZZZZ');
  await page.getByRole('alert').filter({ hasText: 'There is no run' }).waitFor();
  await page.close();
});
