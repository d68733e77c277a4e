// Runs that are tried again, archived and deleted at the real server while a page looks on:
//   NORMLABD=… NORMLAB=… node lives.e2e.mjs ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { before } from 'node:test';
import { drawnPoints, until } from './browser.mjs';
import { openFor, show } from './opened.mjs';
import { RealServer } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const server = new RealServer({
  script: 'steps_per_second=0',
  scriptBySeed: { 2: 'steps_per_second=20' },
});
const opened = openFor(server);
let page;
before(async () => {
  page = await opened.page('#/runs');
});

function draw(...ids) {
  return show(page, `#/runs?sel=${ids}`);
}

const names = () => page.locator('tr.run .name').allTextContents();

test('a run that failed and is tried again grows on, and what it left behind is faint', async () => {
  const { id } = await server.submit('again', {
    steps: 100_000,
    seed: 2,
    checkpointEvery: 10,
    onInterrupt: 'fail',
  });
  await draw(id);
  const drawn = async () => drawnPoints(page, 'loss');
  await until('26 points', async () => ((await drawn())[0] ?? []).length >= 26);
  process.kill(server.trainerOf(id), 'SIGKILL');
  const failed = await server.ended(id);
  assert.equal(failed.state, 'STATE_FAILED');
  await page.locator('tr.run .state.failed').waitFor();
  const written = await server.stored(id);

  await server.api('POST', `/runs/${id}:retry`, {});
  await page.locator('tr.run .state.running').waitFor();
  const { attempts } = await until('two attempts', async () => {
    const run = await server.api('GET', `/runs/${id}`);
    return run.attempts.length === 2 && run;
  });
  const from = Number(attempts[1].resumedFromStep);
  assert.ok(from > 0 && from < written.length, `it went on from step ${from}`);
  await until(
    'the curve to grow on',
    async () => (await drawn()).at(-1).length > written.length + 10,
  );
  await page.screenshot({ path: join(artefacts, 'again.png') });
  const [left, curve] = await drawn();
  assert.deepEqual(curve, (await server.stored(id)).slice(0, curve.length));
  assert.deepEqual(left, written.slice(from), 'what the first attempt left behind');
  await page.locator('.connection.live').waitFor();
  await server.api('POST', `/runs/${id}:cancel`, {});
  await server.ended(id);
});

test('archived and deleted runs leave the page', async () => {
  const ids = [];
  for (const name of ['kept', 'archived', 'deleted']) {
    ids.push((await server.submit(name, { steps: 5 })).id);
  }
  for (const id of ids) await server.ended(id);
  await draw(...ids);
  await until('all curves', async () => (await drawnPoints(page, 'loss')).length === 3);
  await server.api('PATCH', `/runs/${ids[1]}`, { archived: true });
  await until('its row to go', async () => !(await names()).includes('archived'));
  const answer = await server.request('DELETE', `/runs/${ids[2]}`);
  assert.equal(answer.status, 200, await answer.text());
  await until('its row to go', async () => !(await names()).includes('deleted'));
  await until('one curve', async () => (await drawnPoints(page, 'loss')).length === 1);
  assert.ok(page.url().endsWith(`sel=${ids[0]}`), page.url());
  await page.reload();
  await until('the list', async () => (await names()).join() === 'kept,again');
  assert.deepEqual(page.faults, []);
});
