// The article's three runs, watched in a real browser from the real server, trainer and command
// line:  NORMLABD=… NORMLAB=… node article.e2e.mjs ARTEFACTS
// What it asserts is read from the pixels that are drawn.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { drawnExtent, takePictures, until } from './browser.mjs';
import { openFor } from './opened.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

// The article's colours, and the names of its runs.
const colours = {
  'Pre-Norm · no warmup': '#2563eb',
  'Post-Norm · no warmup': '#dc5a3a',
  'Post-Norm · 120-step warmup': '#138a72',
};

const server = new RealServer();
const api = (...call) => server.api(...call);

const opened = openFor(server);

test('the article is seen to train', async () => {
  const page = await opened.browser.newPage();
  await page.goto(server.loginAddress());
  await page.getByText('No runs yet').waitFor();
  assert.ok(!page.url().includes('code='), 'the login code is gone from the address');

  const experiment = await api('POST', '/experiments', { preset: 'article' });
  await until('three runs', async () => (await page.locator('tr.run').count()) === 3);
  // Off and on again by the experiment's own box, whatever the page chose by itself.
  const box = page.locator('tr.group input');
  await until('a choice', async () => (await page.locator('tr.run.selected').count()) === 3);
  await box.click();
  assert.equal(await page.locator('tr.run.selected').count(), 0);
  await box.click();
  assert.equal(await page.locator('tr.run.selected').count(), 3);

  // The curve of the first run reaches further to the right, time and again, before the run ends.
  const first = experiment.runs.find((run) => colours[run.displayName] === '#2563eb');
  const reached = [];
  await until(
    'a growing curve',
    async () => {
      const { right, width } = await drawnExtent(page, 'loss', '#2563eb');
      const { state } = await api('GET', `/runs/${first.id}`);
      if (state === 'STATE_RUNNING' && right > (reached.at(-1) ?? 0)) reached.push(right);
      assert.ok(
        ['STATE_QUEUED', 'STATE_STARTING', 'STATE_RUNNING'].includes(state),
        `it ended, having been seen at ${reached}`,
      );
      return reached.length >= 4 && right - reached[0] > width / 5;
    },
    120,
  );
  await page.screenshot({ path: join(artefacts, 'article_running.png') });

  const note = page.locator('[data-series="loss"] .points');
  await until(
    'the end',
    async () => (await note.textContent()).includes('180 of 180 points each'),
    150,
  );
  await until('three ends', async () => (await page.getByText('succeeded').count()) >= 3);
  for (const [name, colour] of Object.entries(colours)) {
    for (const series of ['loss', 'gradient_norm']) {
      const drawn = await drawnExtent(page, series, colour);
      // Other curves may lie over it; its ends reach both sides of the plot.
      const share = (drawn.right - drawn.left) / drawn.width;
      assert.ok(share > 0.8, `${name}, ${series}: drawn over ${share} of the canvas`);
    }
  }
  await takePictures(page, artefacts, 'article');

  // The experiment has what was published beside what came out here.
  await page.evaluate((id) => {
    location.hash = `#/experiments/${id}`;
  }, experiment.id);
  const cells = page.locator('[data-published="Pre-Norm · no warmup"] td.number');
  await until('the figures', async () => (await cells.count()) === 4);
  // Measured loss and norm within .1 % of the published ones (three digits are shown), and those.
  const figures = (await cells.allTextContents()).map(Number);
  for (const [at, published] of [
    [0, 0.00165],
    [2, 1.004],
  ]) {
    assert.ok(Math.abs(figures[at] / published - 1) < 0.006, `${figures}`);
    assert.ok(Math.abs(figures[at + 1] / published - 1) < 0.005, `${figures}`);
  }
  // The same of all three, by what the preset says and what the server has.
  const { presets } = await api('GET', '/presets');
  const preset = presets.find(({ name }) => name === 'article');
  for (const { id, displayName } of experiment.runs) {
    const { summary } = await api('GET', `/runs/${id}`);
    const { published } = preset.runs.find((one) => one.displayName === displayName);
    const row = page.locator(`[data-published="${displayName}"] td.number`);
    const shown = (await row.allTextContents()).map(Number);
    const wanted = [
      summary.finalLoss,
      published.finalLoss,
      summary.maxGradientNorm,
      published.maxGradientNorm,
    ];
    assert.equal(shown.length, wanted.length);
    for (const [at, value] of wanted.entries()) {
      assert.ok(Math.abs(shown[at] / value - 1) < 0.006, `${displayName}: ${shown}, ${wanted}`);
    }
  }
  await until('profiles', async () => (await page.locator('[data-profile] circle').count()) === 36);
  await takePictures(page, artefacts, 'experiment', { height: 1700 });

  // A shared address shows the same: one run alone, in a new tab.
  const other = await opened.browser.newPage();
  await other.goto(`${page.url().split('#')[0]}#/runs?sel=${first.id}`);
  const alone = other.locator('[data-series="gradient_norm"] .points');
  await until('one run', async () => (await alone.textContent()).includes('180 of 180 points'));
  await until('its curve', async () => (await drawnExtent(other, 'loss', '#2563eb')).columns > 0);
  assert.equal((await drawnExtent(other, 'loss', '#dc5a3a')).columns, 0);
  assert.deepEqual([...page.faults, ...other.faults], []);
});
