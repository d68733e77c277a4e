// A server for developing and testing the page without the real one: serves a built page and a
// scripted set of runs through the same routes, encodings and headers.
//
//   node tests/web/fake_server.mjs DIST [PORT]     then open http://127.0.0.1:PORT/#code=fake
//
// Environment: STEP_MS, milliseconds a step (default 60).
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " +
  "data:; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const types = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const token = 'fake-token';

function ulid(index) {
  return `01JFAKE${String(index).padStart(19, '0')}`;
}

/** One scripted run: `loss` and `norm` are functions of the step. */
export function scriptedRun(index, displayName, experiment, spec, loss, norm, more = {}) {
  return {
    run: {
      id: ulid(index),
      displayName,
      colour: colours[displayName] ?? '',
      experiment,
      user: 'lab1',
      spec,
      effectiveSpec: { layers: '12', learningRate: 0.002, steps: '180', ...spec },
      device: 'auto',
      state: 'STATE_QUEUED',
      waitReason: 'waits for cpu:0, about 6 s',
      createTime: '2026-11-29T14:00:00Z',
      progress: { steps: spec.steps ?? '180' },
      summary: {},
    },
    loss,
    norm,
    points: { loss: { steps: [], values: [] }, gradient_norm: { steps: [], values: [] } },
    abandoned: {}, // points by attempt
    failAt: undefined,
    ...more,
  };
}

const colours = {
  'Pre-Norm · no warmup': '#2563eb',
  'Post-Norm · no warmup': '#dc5a3a',
  'Post-Norm · 120-step warmup': '#138a72',
};

const wobble = (step) => 1 + 0.08 * Math.sin(step * 1.7) + 0.05 * Math.sin(step * 0.63);
const pre = (step) => 0.0016 + 4.2 * Math.exp(-step / 12) * wobble(step);
const post = (step) => 4.15 * (1 + 0.01 * wobble(step));
const warm = (step) => 0.017 + (4.1 / (1 + Math.exp((step - 90) / 9))) * wobble(step);

export function articleRuns(first, experiment) {
  const steps = '180';
  return [
    scriptedRun(
      first,
      'Pre-Norm · no warmup',
      experiment,
      { placement: 'pre', steps },
      pre,
      (s) => 1.004 * Math.exp(-s / 40) * wobble(s) + 0.01,
    ),
    scriptedRun(
      first + 1,
      'Post-Norm · no warmup',
      experiment,
      { placement: 'post', steps },
      post,
      (s) => 5 * Math.exp(-s / 6) * wobble(s) + 0.2,
    ),
    scriptedRun(
      first + 2,
      'Post-Norm · 120-step warmup',
      experiment,
      { placement: 'post', steps },
      warm,
      (s) => 3 * Math.exp(-(((s - 80) / 30) ** 2)) * wobble(s) + 0.3,
    ),
  ];
}

export class FakeServer {
  constructor(dist, { stepMilliseconds = 60 } = {}) {
    this.dist = dist;
    this.stepMilliseconds = stepMilliseconds;
    this.sequence = 0;
    this.log = []; // every event, so that a resume is exact
    this.watchers = new Set();
    this.sockets = new Set();
    this.runs = new Map();
    this.experiments = [];
    /** Paths below /api/v1 that are answered with an error. */
    this.broken = undefined;
    this.server = createServer((request, response) => this.handle(request, response));
    this.server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
    this.heartbeat = setInterval(() => {
      for (const watcher of this.watchers) send(watcher, { name: 'heartbeat', data: {} });
    }, 2000);
  }

  listen(port = 0) {
    return new Promise((resolve) => {
      this.server.listen(port, '127.0.0.1', () => resolve(this.server.address().port));
    });
  }

  /** As a killed server: every connection breaks; `listen` brings it back with what it stored. */
  async breakOff() {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  async stop() {
    clearInterval(this.heartbeat);
    await this.breakOff();
  }

  add(experiment, scripted) {
    if (experiment) this.experiments.unshift(experiment);
    for (const one of scripted) {
      this.runs.set(one.run.id, one);
      this.publish('run', one.run);
    }
  }

  /** Trains the runs at the same pace; ends when all have. */
  async train(scripted) {
    for (const one of scripted) {
      one.run = {
        ...one.run,
        state: 'STATE_RUNNING',
        waitReason: '',
        startTime: new Date().toISOString(),
      };
      one.run.attempts = [{ number: 1, device: 'cpu:0' }];
      this.publish('run', one.run);
      this.publish('attempt', { run: one.run.id, attempt: one.run.attempts[0] });
    }
    const last = Math.max(...scripted.map((one) => Number(one.run.progress.steps)));
    for (let step = 1; step <= last; step++) {
      await new Promise((resolve) => setTimeout(resolve, this.stepMilliseconds));
      for (const one of scripted) this.step(one, step);
    }
  }

  step(one, step) {
    const steps = Number(one.run.progress.steps);
    if (step > steps || one.run.endTime) return;
    const columns = {};
    for (const [name, value] of [
      ['loss', one.loss(step)],
      ['gradient_norm', one.norm(step)],
    ]) {
      const wire = Number.isFinite(value) ? value : String(value);
      one.points[name].steps.push(step);
      one.points[name].values.push(wire);
      columns[name] = { steps: [step], values: [wire] };
    }
    const progress = {
      step: String(step),
      steps: String(steps),
      remainingSeconds: ((steps - step) * this.stepMilliseconds) / 1000,
    };
    one.run = { ...one.run, progress };
    const attempt = one.run.attempts.at(-1).number;
    this.publish('points', { run: one.run.id, attempt, columns });
    if (step % 5 === 0) this.publish('progress', { run: one.run.id, progress });
    const diverged = !Number.isFinite(one.loss(step));
    if (step < steps && step !== one.failAt && !diverged) return;
    one.run = {
      ...one.run,
      state: diverged ? 'STATE_DIVERGED' : step === one.failAt ? 'STATE_FAILED' : 'STATE_SUCCEEDED',
      endReason: diverged
        ? `loss is NaN at step ${step}`
        : step === one.failAt
          ? 'the trainer was ended by signal 9 (SIGKILL)'
          : 'all steps done',
      endTime: new Date().toISOString(),
      summary: {
        finalLoss: one.points.loss.values.at(-1),
        finalGradientNorm: one.points.gradient_norm.values.at(-1),
        parameterCount: '610176',
        flopsPerStep: 2.96e9,
      },
    };
    this.publish('run', one.run);
    this.publish('end', { run: one.run });
  }

  remove(one) {
    this.runs.delete(one.run.id);
    this.publish('deleted', { run: one.run.id });
  }

  /** As `normlab retry`: queued again, and then trained from a checkpoint by another attempt. */
  retry(one, resumedFromStep) {
    const last = one.run.attempts.at(-1);
    one.abandoned[last.number] = one.points;
    one.points = Object.fromEntries(
      Object.entries(one.points).map(([name, { steps, values }]) => {
        const keep = steps.filter((step) => step <= resumedFromStep).length;
        return [name, { steps: steps.slice(0, keep), values: values.slice(0, keep) }];
      }),
    );
    const { endTime, endReason, ...run } = one.run;
    one.run = {
      ...run,
      state: 'STATE_QUEUED',
      attempts: [...run.attempts.slice(0, -1), { ...last, lastStep: run.progress.step }],
      progress: { ...run.progress, step: String(resumedFromStep) },
    };
    this.publish('run', one.run);
    const attempt = {
      number: last.number + 1,
      resumedFromStep: String(resumedFromStep),
      resumedFromAttempt: last.number,
    };
    one.run = { ...one.run, state: 'STATE_RUNNING', attempts: [...one.run.attempts, attempt] };
    one.failAt = undefined;
    this.publish('run', one.run);
    this.publish('attempt', { run: one.run.id, attempt });
  }

  // Newest first; a token is the id of the last run of its page.
  page(url) {
    const size = Number(url.searchParams.get('page_size') ?? 50);
    const token = url.searchParams.get('page_token');
    const all = [...this.runs.values()]
      .map((one) => one.run)
      .filter((run) => !run.archived)
      .sort((a, b) => (a.id < b.id ? 1 : -1));
    const rest = all.filter((run) => token === null || run.id < token);
    const runs = rest.slice(0, size);
    const nextPageToken = rest.length > size ? runs.at(-1).id : '';
    return { runs, nextPageToken, totalSize: String(all.length) };
  }

  publish(name, data) {
    const entry = { sequence: ++this.sequence, name, data };
    this.log.push(entry);
    for (const watcher of this.watchers) send(watcher, entry);
  }

  handle(request, response) {
    const url = new URL(request.url, 'http://localhost');
    const json = (code, body) => {
      response.writeHead(code, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const refuse = (code, status, message) =>
      json(code, { error: { code, status, message, details: [] } });
    if (!url.pathname.startsWith('/api/')) return this.file(url.pathname, response);
    if (url.pathname === '/api/v1/login')
      return json(200, { token, user: { name: 'lab1', role: 'admin' } });
    if (request.headers.authorization !== `Bearer ${token}`) {
      return refuse(401, 'UNAUTHENTICATED', 'a token is needed');
    }
    const path = url.pathname.slice('/api/v1'.length);
    if (this.broken?.test(path)) return refuse(500, 'INTERNAL', 'the disk cannot be read');
    if (path === '/runs') return json(200, this.page(url));
    if (path === '/me') return json(200, { name: 'lab1', role: 'admin' });
    if (path === '/experiments') return json(200, { experiments: this.experiments });
    if (path === '/events') return this.watch(url, request, response);
    if (path === '/settings') return json(200, { settings: [] });
    if (path === '/presets') return json(200, { presets: [] });
    // It has no devices and one user.
    if (['/devices', '/queue', '/users'].includes(path)) return json(200, {});
    const [, id, what] = /^\/runs\/([^/]+)(\/series|\/log)?$/.exec(path) ?? [];
    const one = this.runs.get(id);
    if (!one) return refuse(404, 'NOT_FOUND', `there is no ${path}`);
    if (!what) return json(200, one.run);
    if (what === '/log') return json(200, { attempt: 1 });
    const columns = {};
    for (const name of url.searchParams.get('names').split(',')) {
      const { steps, values } = pointsOf(one, name, url.searchParams);
      const bad = values.flatMap((value, index) =>
        typeof value === 'string' ? [steps[index]] : [],
      );
      columns[name] = {
        steps,
        values,
        totalPoints: steps.length,
        nonFinitePoints: bad.length,
        ...(bad.length > 0 ? { firstNonFiniteStep: bad[0] } : {}),
      };
    }
    return json(200, { run: id, columns });
  }

  watch(url, request, response) {
    const runs = (url.searchParams.get('runs') ?? '').split(',').filter(Boolean);
    const resume = url.searchParams.get('resume');
    const watcher = { response, runs: new Set(runs) };
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    if (resume) {
      for (const entry of this.log) if (entry.sequence > Number(resume)) send(watcher, entry);
    } else {
      // As the real one: the latest runs, and only the last of a batch has an id.
      const states = [...this.runs.values()].map((one) => one.run).slice(-200);
      states.forEach((data, index) => {
        const sequence = index === states.length - 1 ? this.sequence : undefined;
        send(watcher, { sequence, name: 'run', data });
      });
    }
    this.watchers.add(watcher);
    request.on('close', () => this.watchers.delete(watcher));
  }

  file(path, response) {
    const name = normalize(path === '/' ? '/index.html' : path);
    try {
      const content = readFileSync(join(this.dist, name));
      response.writeHead(200, {
        'Content-Type': types[extname(name)] ?? 'application/octet-stream',
        'Content-Security-Policy': contentSecurityPolicy,
      });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  }
}

function pointsOf(one, name, query) {
  const points = one.abandoned[query.get('attempt')] ?? one.points;
  const { steps, values } = points[name] ?? { steps: [], values: [] };
  const from = steps.findIndex((step) => step >= Number(query.get('from') ?? 0));
  return from < 0
    ? { steps: [], values: [] }
    : { steps: steps.slice(from), values: values.slice(from) };
}

function send(watcher, { sequence, name, data }) {
  if (name === 'points' && !watcher.runs.has(data.run)) return;
  const id = sequence === undefined ? '' : `id: ${sequence}\n`;
  watcher.response.write(`${id}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** The scene that a developer sees: the article, an older sweep, a diverged and a failed run. */
export async function playScene(fake) {
  const lone = scriptedRun(
    1,
    '<b>markup</b> & "quotes"',
    '',
    { placement: 'pre', layers: '6', steps: '60' },
    pre,
    pre,
  );
  const bad = scriptedRun(
    2,
    'lr 5e-1',
    '',
    { placement: 'post', learningRate: 0.5, steps: '180' },
    (s) => (s < 55 ? post(s) : Number.NaN),
    (s) => (s < 55 ? 3 * s ** 2 : Number.POSITIVE_INFINITY),
  );
  const killed = scriptedRun(3, 'killed', '', { placement: 'post', steps: '180' }, warm, warm, {
    failAt: 72,
  });
  fake.add(undefined, [lone, bad, killed]);
  const pace = fake.stepMilliseconds;
  fake.stepMilliseconds = 0;
  await fake.train([lone, bad, killed]);
  fake.stepMilliseconds = pace;
  const runs = articleRuns(10, 'EXPARTICLE');
  fake.add({ id: 'EXPARTICLE', displayName: 'article', preset: 'article', user: 'lab1' }, runs);
  await fake.train(runs.slice(0, 2));
  await fake.train(runs.slice(2));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [dist, port] = process.argv.slice(2);
  const fake = new FakeServer(dist, { stepMilliseconds: Number(process.env.STEP_MS ?? 60) });
  console.log(`http://127.0.0.1:${await fake.listen(Number(port ?? 0))}/#code=fake`);
  await playScene(fake);
}
