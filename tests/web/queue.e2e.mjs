// Queue and devices in a real browser at the real server:  NORMLABD=… NORMLAB=… node queue.e2e.mjs
// ARTEFACTS
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import test, { before } from 'node:test';
import { openBrowser, seriousFaults, takePictures, until } from './browser.mjs';
import { openFor } from './opened.mjs';
import { RealServer, tiny } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

/** `mine`: a line for a process of a run on the first GPU. */
const gpus = (used, busy, mine = '') =>
  `gpu GPU-1111 81920 ${used} ${busy} NVIDIA H100 80GB\nprocess 4194000 2048\n${mine}` +
  'gpu GPU-2222 81920 79000 99 NVIDIA H100 80GB\nprocess 4194001 78000\n';
const server = new RealServer({
  script: 'steps_per_second=20,gpus=1',
  scriptBySeed: { 66: 'exit_at=3' },
  options: ['--cpu-slots', '1'],
  gpus: gpus(2048, 3),
});
const opened = openFor(server);
let page;
let ada;
before(async () => {
  page = await opened.page('#/runs');
  ada = (await server.api('POST', '/users', { name: 'ada', role: 'member' })).token;
  await page.getByRole('link', { name: 'Queue' }).click();
});

const waiting = () => page.locator('table.waiting tbody .run-name').allTextContents();
const entry = (name, where = page) =>
  where.locator('table.waiting tbody tr', { has: where.getByText(name, { exact: true }) });
const device = (id) =>
  page.locator('table.devices tbody tr', { has: page.getByText(id, { exact: true }) });
const cpu = { device: 'cpu' };

test('an empty queue says what would happen', async () => {
  await page.getByText('Nothing waits.').waitFor();
  await device('cpu:0').getByText('free').waitFor();
});

test('who runs where, who waits for what and until when, as it changes and not by the clock', async () => {
  const first = await server.submit('in front', { steps: 2000 }, cpu);
  await device('cpu:0').getByText('in front').waitFor();
  await device('cpu:0').locator('.state.running').waitFor();
  await server.submit('behind', { steps: 40 }, cpu);
  await until('it to wait', async () => (await waiting()).join() === 'behind');
  assert.match(
    await entry('behind').locator('.reason').textContent(),
    /^waits for run in front on cpu:0$/,
  );
  // Once the speed is known, so is the start; it comes nearer without a request.
  await server.submit('last', { steps: 40 }, cpu);
  const start = entry('behind').locator('.start');
  await until('an estimate', async () => /^in \d/.test(await start.textContent()));

  const text = await start.textContent();
  const requests = [];
  const note = (request) => requests.push(request.url());
  page.on('request', note);
  await until('it nearer', async () => (await start.textContent()) !== text);
  page.off('request', note);
  // The GPUs of this server are looked at every five seconds; nothing else may have been asked.
  assert.ok(requests.length <= 2, requests.join('\n'));

  await server.api('POST', `/runs/${first.id}:cancel`, {});
  await device('cpu:0').getByText('behind').waitFor();
  await until('the others', async () => (await waiting()).join() === 'last');
});

test('own runs are moved, held, released, lowered and cancelled', async () => {
  const { runs } = await server.api('GET', '/runs?states=RUNNING,STARTING,QUEUED');
  for (const run of runs) await server.request('POST', `/runs/${run.id}:cancel`, {});
  await server.submit('holder', { steps: 100_000 }, cpu);
  await device('cpu:0').getByText('holder').waitFor();
  for (const name of ['one', 'two', 'three']) await server.submit(name, { steps: 10 }, cpu);
  await until('three', async () => (await waiting()).join() === 'one,two,three');

  const change = async (name, what) => {
    await entry(name).getByRole('button', { name: 'change the place' }).click();
    await entry(name).getByRole('button', { name: what, exact: true }).click();
  };
  await change('three', 'move up');
  await until('it up', async () => (await waiting()).join() === 'one,three,two');
  await change('one', 'move last');
  await until('it last', async () => (await waiting()).join() === 'three,two,one');
  await change('three', 'hold');
  await until('it held', async () => (await waiting()).join() === 'two,one,three');
  await until(
    'why',
    async () => (await entry('three').locator('.reason').textContent()) === 'held',
  );
  await change('three', 'release');
  await until('it back', async () => (await waiting()).join() === 'three,two,one');
  await entry('three').getByRole('button', { name: 'change the place' }).click();
  await entry('three').getByRole('combobox', { name: 'class' }).selectOption('low');
  await until('it lower', async () => (await waiting()).join() === 'two,one,three');
  await change('two', 'cancel');
  await entry('two').getByRole('button', { name: 'yes, cancel' }).click();
  await until('it gone', async () => (await waiting()).join() === 'one,three');
});

test('another user stands beside, changes only their own, and drains nothing', async () => {
  const spec = { ...tiny, steps: 10 };
  await server.api('POST', '/runs', { displayName: '<i>ada</i>', spec, device: 'cpu' }, ada);
  await entry('<i>ada</i>').waitFor();
  assert.equal(await page.locator('main i').count(), 0);
  const standing = page.locator('table.standing tbody tr');
  await until('both', async () => (await standing.count()) === 2);
  assert.match(await standing.first().textContent(), /^ada01/);

  const theirs = await openBrowser();
  try {
    const other = await theirs.newPage();
    await other.goto(page.url());
    await other.getByLabel('Or paste a token').fill(ada);
    await other.getByRole('button', { name: 'Log in' }).click();
    await entry('<i>ada</i>', other).getByRole('button').waitFor();
    assert.equal(await entry('one', other).getByRole('button').count(), 0);
    assert.equal(await other.getByRole('button', { name: 'out of use' }).count(), 0);
    assert.deepEqual(other.faults, []);
  } finally {
    await theirs.close();
  }
});

test('GPUs show memory and use, by whom, and why they take no runs', async () => {
  const memory = (id) => device(id).locator('.memory');
  await until('memory', async () =>
    /2\.00 GiB of 80\.0 GiB/.test(await memory('gpu:0').textContent()),
  );
  assert.match(await memory('gpu:0').getAttribute('title'), /2\.00 GiB of it by others/);
  assert.match(await device('gpu:1').locator('.reason').textContent(), /^takes no runs: /);
  // No event tells of this.
  server.setGpus(gpus(40_960, 57));
  await until('more memory', async () => /40\.0 GiB/.test(await memory('gpu:0').textContent()));
  assert.equal(await device('gpu:0').locator('.use').textContent(), '57 %');
});

test('a device is drained with a reason, and put back', async () => {
  await device('gpu:0').getByRole('button', { name: 'out of use' }).click();
  await page.getByRole('textbox', { name: 'why' }).fill('fan is <b>broken</b>');
  await page.keyboard.press('Enter');
  await until('why', async () =>
    /fan is <b>broken<\/b>/.test(await device('gpu:0').locator('.reason').textContent()),
  );
  assert.deepEqual(await seriousFaults(page), []);
  await device('gpu:0').getByRole('button', { name: 'put back' }).click();
  await until('it back', async () => (await device('gpu:0').locator('.reason').count()) === 0);
  assert.deepEqual(page.faults, []);
});

test('every reason to wait is on the page, in the words of the server', async () => {
  const onGpu = { device: 'gpu:0', resources: { gpuMemoryBytes: String(2 * 2 ** 30) } };
  const adas = (displayName) =>
    server.api('POST', '/runs', { displayName, spec: { ...tiny, steps: 100_000 }, ...onGpu }, ada);
  await server.api('PATCH', '/users/ada', { limits: { running: 1 } });
  const trains = await adas('trains');
  await device('gpu:0').getByText('trains').waitFor();
  await adas('limited');
  await server.submit('held', { steps: 10 }, { ...cpu, held: true });
  await server.submit('follows', { steps: 10 }, { ...cpu, after: [{ run: trains.id }] });
  await server.submit('no room', { steps: 10 }, { device: 'gpu:1' });
  await server.submit('fails', { steps: 10, seed: 66, retries: 3 }, onGpu);
  // What is said beside the time, for each cause that lasts; "starts next" is over at once.
  const wanted = {
    held: /^held$/,
    follows: /^waits for run trains to end$/,
    fails: /^tried again$/,
    limited: /^ada already runs 1 of at most 1$/,
    'no room': /^no device: .*gpu:1.*use/,
    one: /^waits for run holder on cpu:0$/,
    three: /^waits its turn behind \d+ runs? of higher priority$/,
  };
  for (const [name, words] of Object.entries(wanted)) {
    const reason = () => entry(name).locator('.reason').textContent();
    await until(`why ${name} waits`, async () => words.test(await reason())).catch(async (error) =>
      assert.fail(`${error.message}: ${await reason()}`),
    );
  }
  for (const name of ['limited', 'held', 'follows', 'no room', 'fails']) {
    const { runs } = await server.api('GET', `/runs?filter=name="${name}"`);
    await server.api('POST', `/runs/${runs[0].id}:cancel`, {});
  }
  await server.api('POST', `/runs/${trains.id}:cancel`, {});
  await server.ended(trains.id);
});

test('a GPU whose memory did not come back is in quarantine, until somebody puts it back', async () => {
  const memory = { gpuMemoryBytes: String(50 * 2 ** 30) };
  const run = await server.submit(
    'left <b>some</b>',
    { steps: 100_000 },
    { device: 'gpu:0', resources: memory },
  );
  const holder = device('gpu:0').locator('.holder', { hasText: 'left <b>some</b>' });
  await holder.locator('.state.running').waitFor();
  server.setGpus(gpus(42_048, 50, `process ${server.trainerOf(run.id)} 40000\n`));
  await device('gpu:0').getByText('41.1 GiB of 80.0 GiB').waitFor();
  await server.api('POST', `/runs/${run.id}:cancel`, {});
  await server.ended(run.id);
  server.setGpus(gpus(42_048, 50)); // its process has gone, the memory has not
  const reason = device('gpu:0').locator('.reason');
  await until('why', async () => (await reason.count()) === 1);
  assert.equal(
    await reason.textContent(),
    'takes no runs: quarantined: 40000 MiB were still in use by no process after run ' +
      'left <b>some</b> had ended; when all is well there: normlab devices --enable gpu:0',
  );
  await server.submit('next one', { steps: 100_000 }, { device: 'gpu:0', resources: memory });
  await until('why it waits', async () =>
    /^no device: .*quarantined: 40000 MiB/.test(
      await entry('next one').locator('.reason').textContent(),
    ),
  );
  await takePictures(page, artefacts, 'queue');
  // Who puts back what is out of use for another reason is told so.
  await device('gpu:1').getByRole('button', { name: 'put back' }).click();
  await page.locator('.said', { hasText: 'gpu:1 still takes no runs: others' }).waitFor();
  await device('gpu:0').getByRole('button', { name: 'put back' }).click();
  await until('it back', async () => (await reason.count()) === 0);
  await device('gpu:0').getByText('next one').waitFor();
  assert.equal(await entry('next one').count(), 0);
  assert.deepEqual(page.faults, []);
});

test('a page that lost its server keeps the queue, and catches up', async () => {
  const before = await waiting();
  assert.ok(before.length > 0);
  await server.kill();
  await page.getByText('offline since').waitFor();
  assert.deepEqual(await waiting(), before);
  await server.start();
  await page.locator('.connection.live').waitFor();
  await server.submit('after the fall', { steps: 10 }, cpu);
  await entry('after the fall').waitFor();
  await until('no problem', async () => (await page.locator('main .problem').count()) === 0);
});
