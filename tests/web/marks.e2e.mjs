// NaN, +Infinity, -Infinity and no value, from a trainer to the pixels of the page:
//   NORMLABD=… NORMLAB=… node marks.e2e.mjs ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { drawnPoints, markAt, putCursor, seeCharts, until } from './browser.mjs';
import { openFor } from './opened.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const steps = 24;
const special = {
  nan: 6,
  plus: 10,
  minus: 14,
  missing: 18,
  gradientNan: 21,
  zero: 3,
  negative: 22,
};
const server = new RealServer({
  script:
    `nan_at=${special.nan},plus_inf_at=${special.plus},minus_inf_at=${special.minus},` +
    `missing_at=${special.missing},gradient_nan_at=${special.gradientNan},` +
    `zero_at=${special.zero},negative_at=${special.negative}`,
});

const opened = openFor(server);

/** Puts the cursor of a chart at a step, and returns what is written below it. */
async function hover(page, series, step) {
  await putCursor(page, series, step);
  const note = page.locator(`[data-series="${series}"] .here`);
  await until('the cursor', async () =>
    (await page.locator('.curves .strip').textContent()).includes(`step ${step}`),
  );
  return note.textContent();
}

test('what a log axis has no place for looks different and says what it is', async () => {
  const run = await server.submit('four things', { steps, stopOnNonFinite: false });
  await server.ended(run.id);
  const page = await opened.browser.newPage();
  await seeCharts(page);
  await page.goto(server.loginAddress());
  const corner = page.locator('[data-series="loss"] .points');
  await until('the curve', async () => (await corner.textContent()).includes('23 of 23 points'));
  assert.equal(
    await corner.textContent(),
    '23 of 23 points · ⚡\uFE0E 1 NaN, 1 +Infinity, 1 −Infinity, first at step 6' +
      ' · 2 at or below zero, off the log axis',
  );

  const seen = {};
  for (let step = 1; step <= steps; step++) {
    const marks = [
      await markAt(page, 'loss', step, 'top'),
      await markAt(page, 'loss', step, 'bottom'),
    ];
    if (marks.join('') !== '') seen[step] = marks;
  }
  assert.deepEqual(seen, {
    [special.nan]: ['', '×'],
    [special.plus]: ['▲', ''],
    [special.minus]: ['', '▼'],
    [special.zero]: ['', '○'],
    [special.negative]: ['', '○'],
  });
  assert.equal(await markAt(page, 'gradient_norm', special.gradientNan, 'bottom'), '×');

  // The line breaks at what is not finite, and goes straight over what is not there.
  const [line] = await drawnPoints(page, 'loss');
  const points = new Map(line);
  for (const step of [special.nan, special.plus, special.minus, special.zero, special.negative])
    assert.equal(points.get(step), null);
  assert.equal(points.has(special.missing), false);
  assert.equal(points.size, steps - 1);

  assert.equal(await hover(page, 'loss', special.nan), 'step 6: NaN');
  assert.equal(await hover(page, 'loss', special.plus), 'step 10: +Infinity');
  assert.equal(await hover(page, 'loss', special.minus), 'step 14: −Infinity');
  assert.equal(await hover(page, 'loss', special.missing), 'step 18: no point');
  assert.equal(await hover(page, 'loss', special.zero), 'step 3: 0');
  assert.equal(await hover(page, 'loss', special.negative), 'step 22: −1.00');
  assert.equal(await hover(page, 'loss', special.missing), 'step 18: no point');
  const cells = page.locator('tr.run td.value');
  await until('its row', async () => (await cells.allTextContents()).join() === 'no point,0.111');
  await page.screenshot({ path: join(artefacts, 'marks_missing.png') });
  assert.equal(await hover(page, 'loss', 20), 'step 20: 0.200');
  assert.equal(await hover(page, 'gradient_norm', special.gradientNan), 'step 21: NaN');
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(artefacts, `marks_${colorScheme}.png`) });
  }
  assert.deepEqual(page.faults, []);
});
