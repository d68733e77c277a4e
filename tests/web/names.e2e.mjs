// Names are text, whatever they look like, to the real server and the page:
//   NORMLABD=… NORMLAB=… node names.e2e.mjs ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { drawnPoints, seeCharts, until } from './browser.mjs';
import { openFor } from './opened.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const harmless = 'harmless';
const hostile = [
  '<img src=x onerror="document.title=1">',
  '<script>document.title = 2</script>',
  '</th></tr></table><iframe src="javascript:document.title=3">',
  '"><svg onload=document.title=4>',
  "' onmouseover='document.title=5",
  '&lt;b&gt; &amp; &#x1F600; {{7*7}} #{8*8} %3Cb%3E',
  '=1+1, "quoted", ../../etc/passwd, a/b\\c',
  `${'so long that no column holds it '.repeat(9)}whole`,
  'W'.repeat(300),
  '\u202Eright to left override\u202D and back',
  '\u05E9\u05DC\u05D5\u05DD \u0645\u0631\u062D\u0628\u0627 (mixed) 123',
  '🧪 ➜ Z\u0351\u036B\u0343\u036A\u0302a\u0329\u0332lgo e\u0301\u200D',
  ' spaces  kept ',
];

// One step is not finite, so that the chart has something to say about each run, with its name.
const server = new RealServer({ script: 'nan_at=2' });
const opened = openFor(server);

test('names with line ends, or longer than 300 bytes, are refused by name of the field', async () => {
  for (const name of ['two\nlines', 'a\rb', 'tab\there', 'nul\0', 'W'.repeat(301)]) {
    const response = await server.request('POST', '/runs', { displayName: name, spec: {} });
    assert.equal(response.status, 400, JSON.stringify(name));
    const { error } = await response.json();
    assert.equal(error.status, 'INVALID_ARGUMENT');
    assert.match(JSON.stringify(error), /display_?name/i, JSON.stringify(name));
  }
});

test('no name becomes markup, breaks the layout or is changed', async () => {
  const ids = new Map();
  for (const name of [harmless, ...hostile]) {
    const { id } = await server.submit(name, { steps: 4, stopOnNonFinite: false });
    ids.set(id, name);
  }
  for (const id of ids.keys()) await server.ended(id);

  const page = await opened.browser.newPage();
  await seeCharts(page);
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(server.loginAddress());
  await until('all rows', async () => (await page.locator('tr.run').count()) === ids.size);
  const title = await page.title();

  // Each row has the elements that the harmless one has, and its name as it was given.
  const rows = await page.locator('tr.run').evaluateAll((all) =>
    all.map((row) => ({
      id: row.dataset.run,
      name: row.querySelector('.name').textContent,
      hover: row.querySelector('.name').title,
      label: row.querySelector('input').getAttribute('aria-label'),
      // Without the small curve, which comes when it has been read.
      elements: [...row.querySelectorAll(':not(.sparkline, .sparkline *)')]
        .map((one) => one.tagName)
        .join(' '),
      height: row.getBoundingClientRect().height,
      right: row.getBoundingClientRect().right,
    })),
  );
  const like = rows.find(({ name }) => name === harmless);
  for (const row of rows) {
    const name = ids.get(row.id);
    assert.equal(row.name, name);
    assert.equal(row.hover, `${name}\n${row.id}`);
    assert.equal(row.label, `draw ${name}`);
    assert.equal(row.elements, like.elements, name);
    assert.equal(row.height, like.height, name);
    assert.equal(row.right, like.right, name);
  }

  // One by one above the charts, where its state stands behind its name; then all of them, with
  // what the chart says about the step that is not finite.
  const state = page.locator('.strip .state');
  for (const [id, name] of ids) {
    await page.evaluate((sel) => {
      location.hash = `#/runs?sel=${sel}`;
    }, id);
    await until(name, async () => (await page.locator('.strip b').allTextContents())[0] === name);
    const box = await state.boundingBox();
    const nameBox = await page.locator('.strip b').boundingBox();
    assert.ok(box.x >= nameBox.x + nameBox.width, `${name}: its state stands behind it`);
    assert.ok(box.x + box.width < 1440, `${name}: its state is seen`);
  }
  await page.evaluate((sel) => {
    location.hash = `#/runs?sel=${sel}`;
  }, [...ids.keys()].join());
  await until('all curves', async () => (await drawnPoints(page, 'loss')).length === ids.size);
  const x = await page.evaluate(() => window.charts.loss.valToPos(2, 'x'));
  await page.locator('[data-series="loss"] .u-over').hover({ position: { x, y: 80 } });
  const here = page.locator('[data-series="loss"] .here');
  await until('the note', async () => (await here.textContent()).startsWith('step 2: NaN ('));
  for (const name of ids.values()) assert.ok((await here.textContent()).includes(name), name);

  for (const [look, width] of [
    ['wide', 1440],
    ['phone', 420],
  ]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(artefacts, `names_${look}.png`) });
    assert.equal(
      await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
      false,
      `${look}: nothing sticks out sideways`,
    );
  }
  const foreign =
    '#page :is(img, svg:not(.sparkline), script, iframe, style, link, object, embed, b b), main form';
  assert.equal(await page.locator(foreign).count(), 0);
  assert.equal(await page.title(), title);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.deepEqual(page.faults, []);
});
