import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { type Question, RunQuery } from './run_query';

/** A server with these runs: pages newest first, and a filter that names the ids it contains. */
class Server {
  asked: { question: Question; size: number; token: string }[] = [];
  runs: RunJson[] = [];
  /** Which runs a filter names. */
  named: (question: Question, run: RunJson) => boolean = (_, run) => !run.archived;
  fault: Error | undefined;
  /** Answers wait until this is called. */
  release: (() => void) | undefined;
  private gate: Promise<void> | undefined;
  query = new RunQuery({
    mark: () => 0,
    take: () => undefined,
    list: async (question, size, token) => {
      this.asked.push({ question, size, token });
      if (this.fault) throw this.fault;
      const all = this.runs
        .filter((run) => this.named(question, run))
        .sort((a, b) => ((a.id as string) < (b.id as string) ? 1 : -1));
      const rest = all.filter((run) => token === '' || (run.id as string) < token);
      const page = rest.slice(0, size);
      const nextPageToken = rest.length > size ? (page.at(-1)?.id ?? '') : '';
      await this.gate;
      return { runs: page, nextPageToken, totalSize: String(all.length) };
    },
  });

  constructor(count: number) {
    this.runs = Array.from({ length: count }, (_, index) => ({ id: idOf(index) }));
  }

  hold(): void {
    this.gate = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  event(run: RunJson): void {
    this.runs = [...this.runs.filter((one) => one.id !== run.id), run];
    this.query.takeEvent({ kind: 'run', run });
  }
}

const idOf = (index: number) => `01J${String(index).padStart(5, '0')}`;
const plain = { filter: '', order: '' };
const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('RunQuery without a filter', () => {
  it('reads page after page, each run once, while runs come', async () => {
    const server = new Server(450);
    server.query.ask(plain);
    await settle();
    expect(server.query.ids.value.length).toBe(200);
    expect(server.query.total.value).toBe(450);
    server.event({ id: idOf(450) });
    for (let page = 0; page < 5; page++) {
      server.query.more();
      server.query.more(); // while one is on its way: nothing
      await settle();
    }
    const expected = Array.from({ length: 451 }, (_, index) => idOf(450 - index));
    expect(server.query.ids.value).toEqual(expected);
    expect(server.query.total.value).toBe(451);
    expect(server.asked.length).toBe(3);
  });

  it('reads on to the beginning of an experiment in large pages, and no further', async () => {
    const server = new Server(5000);
    server.query.ask(plain);
    await settle();
    server.query.more(); // somebody scrolls meanwhile
    expect(server.query.isPartDownTo(idOf(3500))).toBe(true);
    const whole = server.query.readDownTo(idOf(3500), 10_000);
    await settle();
    expect(await whole).toBe(true);
    expect(server.query.ids.value).toContain(idOf(3501));
    expect(new Set(server.query.ids.value).size).toBe(2400);
    expect(server.query.isPartDownTo(idOf(3500))).toBe(false);
    expect(server.asked.map(({ size }) => size)).toEqual([200, 200, 1000, 1000]);
  });

  it('reads no more than it may, and says so', async () => {
    const server = new Server(5000);
    server.query.ask(plain);
    await settle();
    const whole = server.query.readDownTo(idOf(0), 2000);
    await settle();
    expect(await whole).toBe(false);
    expect(server.query.ids.value.length).toBe(2200);
    expect(server.query.isPartDownTo(idOf(0))).toBe(true);
  });

  it('says when it cannot read on, and can be asked again', async () => {
    const server = new Server(500);
    server.query.ask(plain);
    await settle();
    server.fault = new Error('away');
    await expect(server.query.readDownTo(idOf(0), 2000)).rejects.toThrow('away');
    server.fault = undefined;
    server.hold();
    const reading = server.query.readDownTo(idOf(0), 2000);
    const refused = expect(reading).rejects.toThrow('read anew');
    server.query.again();
    server.release?.();
    await settle();
    await refused;
    expect(await server.query.readDownTo(idOf(0), 2000)).toBe(true);
    expect(server.query.ids.value.length).toBe(500);
  });

  it('does not lose a run that came while the list was on its way', async () => {
    const server = new Server(2);
    server.hold();
    server.query.ask(plain);
    server.query.takeEvent({ kind: 'run', run: { id: idOf(7) } });
    server.query.takeEvent({ kind: 'deleted', run: idOf(0) });
    server.release?.();
    await settle();
    expect(server.query.ids.value).toEqual([idOf(7), idOf(1)]);
  });

  it('leaves what is older than the pages read to its page', async () => {
    const server = new Server(300);
    server.query.ask(plain);
    await settle();
    server.event({ id: idOf(3), displayName: 'changed' });
    expect(server.query.ids.value.length).toBe(200);
    expect(server.query.total.value).toBe(300);
  });

  it('takes archived and deleted runs away, and back', async () => {
    const server = new Server(3);
    server.query.ask(plain);
    await settle();
    server.event({ id: idOf(1), archived: true });
    server.query.takeEvent({ kind: 'deleted', run: idOf(0) });
    expect(server.query.ids.value).toEqual([idOf(2)]);
    expect(server.query.total.value).toBe(1);
    server.event({ id: idOf(1), archived: false });
    expect(server.query.ids.value).toEqual([idOf(2), idOf(1)]);
  });

  it('asks nothing when runs change', async () => {
    const server = new Server(3);
    server.query.ask(plain);
    await settle();
    const before = server.asked.length;
    server.event({ id: idOf(1), state: 'STATE_RUNNING' });
    server.query.takeEvent({ kind: 'progress', run: idOf(1), progress: {} });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.asked.length).toBe(before);
  });
});

describe('RunQuery with a filter', () => {
  const running = { filter: 'state=running', order: '' };
  const isNamed = (question: Question, run: RunJson) =>
    run.state === 'STATE_RUNNING' &&
    (!question.filter.includes('id=') || question.filter.includes(`id=${run.id}`));

  it('asks once for all that changed, and adds and takes away', async () => {
    const server = new Server(4);
    server.named = isNamed;
    server.event({ id: idOf(1), state: 'STATE_RUNNING' });
    server.query.ask(running);
    await settle();
    expect(server.query.ids.value).toEqual([idOf(1)]);
    server.event({ id: idOf(1), state: 'STATE_SUCCEEDED' });
    server.event({ id: idOf(2), state: 'STATE_RUNNING' });
    server.event({ id: idOf(9), state: 'STATE_RUNNING' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(server.query.ids.value).toEqual([idOf(9), idOf(2)]);
    expect(server.asked.length).toBe(2);
    expect(server.asked[1]?.question.filter).toBe(
      `(state=running) (id=${idOf(1)} OR id=${idOf(2)} OR id=${idOf(9)})`,
    );
  });

  it('asks about progress much less often than it comes', async () => {
    const server = new Server(1);
    server.named = isNamed;
    server.query.ask(running);
    await settle();
    for (let second = 0; second < 60; second++) {
      server.query.takeEvent({ kind: 'progress', run: idOf(0), progress: {} });
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(server.asked.length).toBeLessThanOrEqual(8);
    expect(server.asked.length).toBeGreaterThanOrEqual(5);
  });

  it('asks nothing while nobody looks, and then about all that changed', async () => {
    const server = new Server(1);
    server.named = isNamed;
    server.query.ask(running);
    await settle();
    server.query.show(false);
    server.event({ id: idOf(0), state: 'STATE_RUNNING' });
    for (let second = 0; second < 60; second++) {
      server.query.takeEvent({ kind: 'progress', run: idOf(0), progress: {} });
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(server.asked.length).toBe(1);
    server.query.show(true);
    await vi.advanceTimersByTimeAsync(100);
    expect(server.asked.length).toBe(2);
    expect(server.query.ids.value).toEqual([idOf(0)]);
  });

  it('reads an ordered list again after a change', async () => {
    const server = new Server(2);
    server.query.ask({ filter: '', order: 'final_loss' });
    await settle();
    server.event({ id: idOf(5) });
    expect(server.query.ids.value).toEqual([idOf(1), idOf(0)]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(server.query.ids.value).toEqual([idOf(5), idOf(1), idOf(0)]);
  });

  it('keeps the list of before while the server refuses a filter, and does not ask again', async () => {
    const server = new Server(2);
    server.query.ask(plain);
    await settle();
    server.fault = new ApiError(400, 'INVALID_ARGUMENT', 'filter: at character 1: no such field');
    server.query.ask({ filter: 'lr<1', order: '' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.query.problem.value).toBe('filter: at character 1: no such field');
    expect(server.query.refused.value).toBe(true);
    expect(server.query.ids.value.length).toBe(2);
    expect(server.asked.length).toBe(2);
    server.fault = undefined;
    server.query.ask(plain);
    await settle();
    expect(server.query.problem.value).toBe('');
    expect(server.query.listed.value).toBe(true);
  });

  it('tries again when the server is away', async () => {
    const server = new Server(2);
    server.fault = new Error('network');
    server.query.ask(plain);
    await settle();
    expect(server.query.problem.value).toBe('network');
    server.fault = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.query.ids.value.length).toBe(2);
    expect(server.query.problem.value).toBe('');
  });

  it('asks again about changes, and for a page, that it could not read', async () => {
    const server = new Server(300);
    server.query.ask({ filter: 'user=ada', order: '' });
    await settle();
    server.fault = new Error('network');
    server.named = (_, run) => run.id !== idOf(299);
    server.event({ id: idOf(299) });
    await vi.advanceTimersByTimeAsync(1000);
    expect(server.query.problem.value).toBe('network');
    server.fault = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.query.problem.value).toBe('');
    expect(server.query.ids.value).not.toContain(idOf(299));

    server.fault = new Error('network');
    server.query.more();
    await settle();
    expect(server.query.problem.value).toBe('network');
    server.fault = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.query.problem.value).toBe('');
    expect(server.query.ids.value).toContain(idOf(0));
  });

  it('forgets the answer to a question that is not asked any more', async () => {
    const server = new Server(2);
    server.event({ id: idOf(1), state: 'STATE_RUNNING' });
    server.named = (question, run) => question.filter === '' || isNamed(question, run);
    server.hold();
    server.query.ask(running);
    server.query.ask(plain);
    server.query.ask(running);
    server.release?.();
    await settle();
    expect(server.asked.length).toBe(3);
    expect(server.query.ids.value).toEqual([idOf(1)]);
  });
});
