// Submitting runs from a real browser at the real server:  NORMLABD=… NORMLAB=… node submit.e2e.mjs
// ARTEFACTS
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { before } from 'node:test';
import { openBrowser, seriousFaults, takePictures, until } from './browser.mjs';
import { openFor, show } from './opened.mjs';
import { RealServer, tiny } from './real_server.mjs';

const [artefacts] = process.argv.slice(2);
mkdirSync(artefacts, { recursive: true });

const server = new RealServer({
  script: 'steps_per_second=20',
  gpus: 'gpu GPU-1111 81920 0 0 NVIDIA H100 80GB\n',
});
const opened = openFor(server);
let page;
before(async () => {
  page = await opened.page('#/runs');
  await page.getByRole('link', { name: 'Submit', exact: true }).click();
  await page.locator('#setting-layers').waitFor();
});

const field = (name) => page.locator(`#setting-${name}`);
const summary = () => page.locator('.summary');
const size = (name) =>
  summary().locator('.size > div', { hasText: name }).locator('dd').textContent();
const command = () => page.locator('.command pre').textContent();
const submitButton = () => summary().getByRole('button', { name: /^submit/ });
const isReady = async () => (await submitButton().isEnabled()) && true;
const runsOf = async () => (await server.api('GET', '/runs?page_size=1000')).runs;

test('the form has every declared setting, with help and default', async () => {
  const { settings } = await server.api('GET', '/settings');
  for (const setting of settings) {
    await page.getByRole('searchbox', { name: 'find a setting' }).fill(setting.name);
    const box = page.locator('.field', { has: field(setting.name) });
    await box.waitFor();
    assert.ok((await box.textContent()).includes(setting.help), setting.name);
    if (setting.choices && !setting.choicePrefix) {
      const values = await field(setting.name)
        .locator('option')
        .evaluateAll((all) => all.map((one) => one.value));
      assert.deepEqual(values, setting.choices, setting.name);
    }
  }
  await page.getByRole('searchbox', { name: 'find a setting' }).fill('');
  // What counts only with another setting is there when that is.
  assert.equal(await field('experts').count(), 0);
  await field('ffn').selectOption('switch');
  await field('experts').waitFor();
  await page.getByRole('button', { name: 'default of ffn' }).click();
  await until('it gone', async () => (await field('experts').count()) === 0);
});

test('size is known before anything is submitted, and mistakes stand at their fields', async () => {
  await until('a size', async () => (await size('parameters')) === '610,176');
  assert.match(await size('memory'), /^\d+ MiB$/);
  await field('layers').fill('24');
  await until(
    'a larger one',
    async () => Number((await size('parameters')).replace(/,/g, '')) > 1e6,
  );

  await field('layers').fill('0');
  await field('learning_rate').fill('fast');
  const problem = (name) => page.locator(`#setting-${name}-problem`);
  await until('why', async () => (await problem('learning_rate').count()) === 1);
  assert.match(await problem('learning_rate').textContent(), /"fast" is not a number/);
  assert.equal(await submitButton().isDisabled(), true);
  await field('learning_rate').fill('5e-4');
  await until('the next', async () => /too small/.test(await problem('layers').textContent()));
  await field('layers').fill('2');
  await field('d_model').fill('30');
  await field('heads').fill('4');
  await until('heads', async () => (await problem('heads').count()) === 1);
  await field('d_model').fill('32');
  await until('no problem', isReady);
  assert.equal((await runsOf()).length, 0, 'nothing was submitted');
});

test('what differs from the defaults is in the address and on the command line', async () => {
  await page.locator('#name').fill("it's <b>mine</b>; $(touch x)");
  await page.locator('#held').check();
  await until('no problem', isReady);
  assert.match(page.url(), /learning_rate=5e-4/);
  const changes = await summary().locator('.changes dt').allTextContents();
  assert.deepEqual(changes, ['layers', 'd_model', 'learning_rate']);

  // The line does in a shell what the button does.
  const line = await command();
  assert.match(line, /^normlab submit --layers 2 --d-model 32 /);
  execFileSync('/bin/sh', ['-c', line], {
    env: {
      ...process.env,
      PATH: `${dirname(process.env.NORMLAB)}:${process.env.PATH}`,
      NORMLAB_DATA_DIR: server.folder,
    },
  });
  const address = page.url();
  await submitButton().click();
  await until('its page', () => /#\/runs\/\w{26}$/.test(page.url()));
  const runs = await runsOf();
  assert.equal(runs.length, 2);
  const [one, other] = runs;
  assert.equal(one.displayName, "it's <b>mine</b>; $(touch x)");
  assert.deepEqual(one.effectiveSpec, other.effectiveSpec);
  assert.deepEqual([one.displayName, one.held], [other.displayName, other.held]);

  const shared = await opened.browser.newPage();
  await shared.goto(address);
  await shared.locator('#setting-layers').waitFor();
  assert.equal(await shared.locator('#setting-layers').inputValue(), '2');
  assert.equal(await shared.locator('#name').inputValue(), one.displayName);
  await shared.close();
});

test('the same as a run, but …', async () => {
  const [run] = await runsOf();
  await show(page, `#/submit?from=${run.id}`);
  await page.getByRole('heading', { name: `Same as ${run.displayName}, but` }).waitFor();
  assert.equal(await field('d_model').inputValue(), '32');
  await page.getByRole('button', { name: 'default of d_model' }).click();
  await field('placement').selectOption('post');
  await page.getByRole('checkbox', { name: 'only what differs' }).check();
  await until('what differs', async () => (await field('d_model').count()) === 0);
  assert.deepEqual(await page.locator('.field.changed label').allTextContents(), [
    'placement',
    'layers',
    'learning_rate',
  ]);
  await page.getByRole('checkbox', { name: 'only what differs' }).uncheck();
  await until('no problem', isReady);
  await submitButton().click();
  await until('its page', () => /#\/runs\/\w{26}$/.test(page.url()));
  const id = page.url().slice(-26);
  const made = await server.api('GET', `/runs/${id}`);
  assert.deepEqual(made.spec, { placement: 'post', layers: '2', learningRate: 0.0005 });
});

test('what is asked of a GPU is in the line and in the run, or refused at its field', async () => {
  await show(page, '#/submit');
  await page.locator('#device').selectOption('gpu:0');
  await page.locator('#gpu_memory').fill('much');
  const wrong = page.locator('.field', { has: page.locator('#gpu_memory') }).getByRole('alert');
  await wrong.waitFor();
  await page.locator('#gpu_memory').fill('8GiB');
  await until('no problem', async () => (await isReady()) && (await wrong.count()) === 0);
  await page.locator('#held').check();
  await until('no problem', isReady);
  assert.equal(await command(), 'normlab submit --device gpu:0 --gpu-memory 8GiB --hold');
  await submitButton().click();
  await until('its page', () => /#\/runs\/\w{26}$/.test(page.url()));
  const { device, resources } = await server.api('GET', `/runs/${page.url().slice(-26)}`);
  assert.deepEqual([device, resources.gpuMemoryBytes], ['gpu:0', String(8 * 2 ** 30)]);
});

test('what it waits for and the experiment it joins are in the line and in the run, or refused', async () => {
  const first = await server.submit('goes first', { steps: 10 }, { held: true });
  await server.submit('named twice', { steps: 10 }, { held: true });
  await server.submit('named twice', { steps: 10 }, { held: true });
  const made = await server.api('POST', '/experiments', {
    displayName: 'my <i>group</i>',
    held: true,
    runs: [{ displayName: 'member', spec: tiny }],
  });
  await show(page, '#/submit');
  const after = page.locator('.field', { has: page.locator('#after') });
  const add = async (text) => {
    await page.locator('#after').fill(text);
    await page.locator('#after').press('Enter');
  };
  await add('nobody');
  await after.getByText('there is no run "nobody"').waitFor();
  await add('named twice');
  await after.getByText('"named twice" is 2 runs; give the id of one').waitFor();
  await add('goes first');
  await after.getByRole('link', { name: 'goes first' }).waitFor();
  assert.equal(await after.getByRole('alert').count(), 0);
  await add(made.runs[0].id.toLowerCase());
  await after.getByRole('combobox', { name: 'what member must have come to' }).selectOption('any');
  await page.locator('#experiment').selectOption(made.id);
  await page.locator('#held').check();
  await until('no problem', isReady);
  const line =
    `normlab submit --experiment ${made.id} --after ${first.id} --after ${made.runs[0].id}:any ` +
    '--hold';
  assert.match(
    await page.locator('#experiment option:checked').textContent(),
    /^my <i>group<\/i> · \d\d:\d\d$/,
  );
  assert.equal(await command(), line);
  assert.match(page.url(), new RegExp(`after=${first.id},${made.runs[0].id}:any`));

  await submitButton().click();
  await until('its page', () => /#\/runs\/\w{26}$/.test(page.url()));
  const id = page.url().slice(-26);
  const run = await server.api('GET', `/runs/${id}`);
  assert.equal(run.experiment, made.id);
  const facts = page.locator('.facts');
  await facts.getByRole('link', { name: 'goes first' }).waitFor();
  await until('what it waits for', async () => {
    const text = await facts.textContent();
    return /the success of goes first.*the end of member/.test(text);
  });
  assert.deepEqual(
    run.after.map(({ run, condition }) => [run, condition]),
    [
      [first.id, 'ok'],
      [made.runs[0].id, 'any'],
    ],
  );

  // One like it waits for the same, in the same experiment, and can be told otherwise.
  await show(page, `#/submit?from=${id}`);
  await after.getByRole('link', { name: 'goes first' }).waitFor();
  assert.equal(await page.locator('#experiment').inputValue(), made.id);
  await page.locator('#experiment').selectOption('');
  await after.getByRole('button', { name: 'not after member' }).click();
  await until('the other', async () => (await command()).endsWith(` --after ${first.id}`));
  assert.match(page.url(), /experiment=(&|$)/);

  // What the server refuses stands at its field, though nobody typed it.
  await server.api('POST', `/runs/${first.id}:cancel`, {});
  await show(page, `#/submit?after=${first.id}&experiment=01JZZZZZZZZZZZZZZZZZZZZZZZ`);
  const wrong = (name) =>
    page.locator('.field', { has: page.locator(`#${name}`) }).getByRole('alert');
  await until('why', async () => /no experiment/.test(await wrong('experiment').textContent()));
  await page.locator('#experiment').selectOption('');
  await until('the next', async () => /cancelled/.test(await wrong('after').textContent()));
  assert.equal(await submitButton().isDisabled(), true);
});

test('a preset makes an experiment, with settings of its own replaced', async () => {
  await show(page, '#/submit');
  await page.locator('#preset').selectOption('article');
  await page.locator('#device').selectOption('cpu');
  await field('layers').fill('2');
  await field('steps').fill('20');
  await page.getByRole('button', { name: 'submit 3 runs' }).waitFor();
  assert.equal(await command(), 'normlab preset article --layers 2 --steps 20 --device cpu');
  await until('no problem', isReady);
  await submitButton().click();
  await until('its page', () => /#\/experiments\/\w{26}$/.test(page.url()));
  const made = await server.api('GET', `/experiments/${page.url().slice(-26)}`);
  assert.equal(made.runs.length, 3);
  assert.ok(made.runs.every((run) => run.effectiveSpec.layers === '2'));
});

test('a part of a preset is chosen by the values in which its runs differ', async () => {
  await show(page, '#/submit?preset=init-gradients&held=yes&device=cpu');
  const part = page.getByRole('group', { name: 'runs of init-gradients' });
  const boxes = part.getByRole('checkbox', { name: /^layers / });
  await boxes.first().waitFor();
  for (let at = await boxes.count(); at > 1; at--) await boxes.nth(at - 1).uncheck();
  assert.equal(await boxes.first().isDisabled(), true, 'something must be left');
  const seeds = part.getByRole('checkbox', { name: /^seed / });
  await seeds.nth(0).uncheck();
  await until('no problem', isReady);
  const [, layers] = /--only layers=(\d+) /.exec(await command());
  const [, left] = /--only seed=([\d,]+) /.exec(await command());
  assert.match(page.url(), new RegExp(`only=layers=${layers}(;|%3B)seed=${left}`));
  await submitButton().click();
  await until('its page', () => /#\/experiments\/\w{26}$/.test(page.url()));
  const { runs } = await server.api('GET', `/experiments/${page.url().slice(-26)}`);
  const preset = (await server.api('GET', '/presets')).presets.find(
    ({ name }) => name === 'init-gradients',
  );
  const wanted = preset.runs.filter(
    ({ spec }) => spec.layers === layers && left.split(',').includes(spec.seed),
  );
  assert.ok(wanted.length > 0 && wanted.length < preset.runs.length, `${wanted.length}`);
  assert.deepEqual(
    runs.map(({ displayName }) => displayName),
    wanted.map(({ displayName }) => displayName),
  );
});

test('a viewer is told what to do, and the server refuses what a page may not do', async () => {
  const { token } = await server.api('POST', '/users', { name: 'eve', role: 'viewer' });
  const theirs = await openBrowser();
  try {
    const other = await theirs.newPage();
    await other.goto(`${page.url().split('#')[0]}#/submit`);
    await other.getByLabel('Or paste a token').fill(token);
    await other.getByRole('button', { name: 'Log in' }).click();
    await other.getByText('as a viewer').waitFor();
    const answer = await server.request('POST', '/runs', { spec: {} }, undefined, token);
    assert.equal(answer.status, 403);
  } finally {
    await theirs.close();
  }
});

test('every look is kept as a picture, and axe finds no serious fault', async () => {
  await show(page, '#/submit');
  await field('heads').fill('5');
  await field('placement').selectOption('post');
  await page.locator('#setting-heads-problem').waitFor();
  await takePictures(page, artefacts, 'submit');
  assert.deepEqual(await seriousFaults(page), []);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await seriousFaults(page), []);
  assert.deepEqual(
    page.faults.filter((fault) => !/status of 400/.test(fault)),
    [],
  );
});

test('while the server is away the form keeps what was typed', async () => {
  await server.kill();
  await field('heads').fill('8');
  await summary().getByText('the server could not be asked').waitFor();
  assert.equal(await submitButton().isDisabled(), true);
  assert.equal(await field('heads').inputValue(), '8');
  await page.screenshot({ path: join(artefacts, 'submit_offline.png') });
  await server.start();
  await until('no problem', isReady, 20);
});
