// A normlabd in a folder of its own, for tests of the page: real server, real streams, and, unless
// a test wants to see training, the scripted trainer of tests/fakes/fake_engine.cc.
//
//   const server = new RealServer({ script: 'steps_per_second=20' });
//   await server.start();
//   await page.goto(server.loginAddress());
//   await server.end();
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { until } from './browser.mjs';

const { NORMLABD: normlabd, NORMLAB: normlab } = process.env;
assert.ok(normlabd && normlab, 'set NORMLABD and NORMLAB to the built programs');
const fakeTrainer = join(dirname(normlabd), 'normlab-fake-trainer');

/** A model that costs nothing; the scripted trainer trains none anyway. */
export const tiny = {
  layers: 1,
  dModel: 8,
  heads: 2,
  vocabSize: 8,
  sequenceLength: 4,
  batchSize: 2,
  threads: 1,
};

export class RealServer {
  #process;
  #log = [];
  #arguments;
  #environment;
  #http = '127.0.0.1:0';

  /**
   * `script`: of the trainer, for every run or by seed; without any, the real trainer trains.
   * `gpus`: the text of a file with GPUs, as tests/fakes/fake_nvml.c reads it.
   */
  constructor({ script, scriptBySeed = {}, options = [], gpus } = {}) {
    this.folder = mkdtempSync(join(tmpdir(), 'normlab-web-'));
    const trainer = script === undefined ? [] : ['--trainer', fakeTrainer];
    this.#arguments = [...trainer, ...options];
    this.#environment = { ...process.env, NORMLAB_FAKE_ENGINE: script ?? '' };
    for (const [seed, text] of Object.entries(scriptBySeed)) {
      this.#environment[`NORMLAB_FAKE_ENGINE_${seed}`] = text;
    }
    if (gpus !== undefined) {
      this.#environment.LD_LIBRARY_PATH = join(dirname(normlabd), 'fake_nvml');
      this.#environment.FAKE_NVML = join(this.folder, 'gpus.txt');
      this.#arguments.push('--gpus', 'on');
      this.setGpus(gpus);
    }
  }

  /** What the driver says of its GPUs from now on. */
  setGpus(text) {
    const path = this.#environment.FAKE_NVML;
    writeFileSync(`${path}.next`, text);
    renameSync(`${path}.next`, path); // the server may read it at any moment
  }

  /** Serves; after the first time at the same address again. */
  async start() {
    rmSync(join(this.folder, 'endpoint.json'), { force: true });
    this.#process = spawn(
      normlabd,
      [
        '--data-dir',
        this.folder,
        '--http',
        this.#http,
        '--grpc',
        '127.0.0.1:0',
        ...this.#arguments,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: this.#environment },
    );
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream.on('data', (text) => this.#log.push(text));
    }
    this.endpoint = await until('the server to serve', () => {
      assert.equal(this.#process.exitCode, null, `the server ended:\n${this.#log.join('')}`);
      try {
        return JSON.parse(readFileSync(join(this.folder, 'endpoint.json'), 'utf8'));
      } catch {
        return undefined; // not there yet, or half written
      }
    });
    this.#http = this.endpoint.http;
  }

  /** Host and port. */
  get http() {
    return this.#http;
  }

  /** Serves also to those who come by this port, as behind a proxy. From the next start on. */
  allowPort(port) {
    this.#arguments.push('--allowed-hosts', `127.0.0.1:${port}`);
  }

  async kill(signal = 'SIGKILL') {
    const server = this.#process;
    if (server?.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill(signal);
    await ended;
  }

  /** Ends the server, and the trainers that it has started. */
  async end() {
    if (this.#process?.exitCode !== null || this.#process.signalCode !== null) await this.start();
    for (const run of await this.#allRuns()) {
      if (run.endTime || run.held) continue; // what is held trains nothing
      // It may have ended by itself just now.
      await this.request('POST', `/runs/${run.id}:cancel`, {});
      await this.ended(run.id);
    }
    await this.kill('SIGTERM');
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #allRuns() {
    const all = [];
    let token = '';
    do {
      const page = await this.api('GET', `/runs?page_size=1000&page_token=${token}`);
      all.push(...(page.runs ?? []));
      token = encodeURIComponent(page.nextPageToken ?? '');
    } while (token !== '');
    return all;
  }

  request(method, path, body, base = '/api/v1', token = this.endpoint.token) {
    return fetch(`http://${this.#http}${base}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  }

  /** `token`: of whom; of the server's owner without one. */
  async api(method, path, body, token) {
    const response = await this.request(method, path, body, undefined, token);
    assert.ok(
      response.ok,
      `${method} ${path}: ${response.status} ${await response.clone().text()}`,
    );
    return response.json();
  }

  submit(displayName, spec, more = {}) {
    return this.api('POST', '/runs', { displayName, spec: { ...tiny, ...spec }, ...more });
  }

  ended(id) {
    return until(`${id} to end`, async () => {
      const run = await this.api('GET', `/runs/${id}`);
      return run.endTime && run;
    });
  }

  /** Process id of the trainer of a run's first attempt, once it trains. */
  trainerOf(id) {
    const path = join(this.folder, 'attempts', `${id}-1`, 'shepherd.json');
    return JSON.parse(readFileSync(path, 'utf8')).trainer_pid;
  }

  /** [step, value] of each point stored, as numbers. */
  async stored(id, name = 'loss') {
    const { columns } = await this.api('GET', `/runs/${id}/series?names=${name}`);
    const { steps, values } = columns[name] ?? { steps: [], values: [] };
    return steps.map((step, index) => [step, Number(values[index])]);
  }

  /** Number of event streams that are open. */
  async watchers() {
    const response = await this.request('GET', '/metrics', undefined, '');
    const found = /^normlab_watchers\S* (\d+)/m.exec(await response.text());
    assert.ok(found, `no count of watchers in /metrics (${response.status})`);
    return Number(found[1]);
  }

  /** An address that logs in, once. */
  loginAddress() {
    const printed = execFileSync(normlab, ['open', '--print', '--data-dir', this.folder], {
      encoding: 'utf8',
    });
    const address = /http:\/\/\S+/.exec(printed)?.[0];
    assert.ok(address, `no address in: ${printed}`);
    return address;
  }
}
