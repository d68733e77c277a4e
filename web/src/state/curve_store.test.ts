import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/client';
import type { SeriesAnswer, StreamEvent } from '../api/events';
import { CurveStore } from './curve_store';
import type { AbandonedPart } from './lineage';

type Answer = Record<string, SeriesAnswer>;

function answer(steps: number[]): Answer {
  const values = steps.map((step) => 1 / step);
  return { loss: { steps, values, totalPoints: steps.length, nonFinitePoints: 0 } };
}

function points(run: string, steps: number[], attempt = 1): StreamEvent {
  const values = steps.map((step) => 1 / step);
  return { kind: 'points', run, attempt, columns: { loss: { steps, values } } };
}

/** A server whose answers the test gives by hand. */
function scripted() {
  interface Asked {
    run: string;
    part: AbandonedPart | undefined;
    resolve(a: Answer): void;
    reject(e: Error): void;
  }
  const asked: Asked[] = [];
  const abandoned: AbandonedPart[] = [];
  const missing: string[] = [];
  let attempt = 1;
  const store = new CurveStore(
    {
      readSeries: (run, _signal, part) =>
        new Promise((resolve, reject) => {
          asked.push({ run, part, resolve, reject });
        }),
      abandonedParts: () => abandoned,
      latestAttempt: () => attempt,
      missing: (run) => missing.push(run),
    },
    (work) => work(),
  );
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  const held = (run: string) => store.curve(run)?.series.get('loss')?.steps;
  return {
    store,
    asked,
    abandoned,
    missing,
    settle,
    held,
    setAttempt: (n: number) => (attempt = n),
  };
}

describe('CurveStore', () => {
  it('reads the history only once the stream covers the run', async () => {
    const { store, asked, settle, held } = scripted();
    store.keep(['a']);
    expect(asked).toHaveLength(0);
    store.covered(['a', 'unknown']);
    expect(asked.map((a) => a.run)).toEqual(['a']);
    store.takeEvent(points('a', [3, 4]));
    expect(held('a')).toEqual([3, 4]);
    asked[0]?.resolve(answer([1, 2, 3]));
    await settle();
    expect(held('a')).toEqual([1, 2, 3, 4]);
    expect(store.loading('a')).toBe(false);
  });

  it('shows the old curve after a reset until the new one is there', async () => {
    const { store, asked, settle, held } = scripted();
    store.keep(['a']);
    store.covered(['a']);
    asked[0]?.resolve(answer([1, 2, 3]));
    await settle();
    store.reset();
    expect(held('a')).toEqual([1, 2, 3]);
    store.covered(['a']);
    asked[1]?.resolve(answer([1, 2]));
    await settle();
    expect(held('a')).toEqual([1, 2]);
  });

  it('reads again when a new attempt starts', async () => {
    const { store, asked, settle, held, setAttempt } = scripted();
    store.keep(['a']);
    store.covered(['a']);
    asked[0]?.resolve(answer([1, 2, 3]));
    await settle();
    setAttempt(2);
    store.takeEvent({ kind: 'attempt', run: 'a', attempt: { number: 2, resumedFromStep: '1' } });
    expect(held('a')).toEqual([1]);
    store.takeEvent(points('a', [2], 2));
    asked[1]?.resolve(answer([1]));
    await settle();
    expect(held('a')).toEqual([1, 2]);
  });

  it('reads what attempts left behind, each once', async () => {
    const { store, asked, abandoned, settle, held, setAttempt } = scripted();
    store.keep(['a']);
    store.covered(['a']);
    asked[0]?.resolve(answer([1, 2, 3]));
    await settle();
    expect(store.abandoned('a')).toEqual([]);
    setAttempt(2);
    abandoned.push({ attempt: 1, from: 2 });
    store.takeEvent({ kind: 'attempt', run: 'a', attempt: { number: 2, resumedFromStep: '1' } });
    expect(asked.slice(1).map((one) => one.part)).toEqual([undefined, { attempt: 1, from: 2 }]);
    asked[1]?.resolve(answer([1]));
    asked[2]?.resolve(answer([2, 3]));
    await settle();
    expect(held('a')).toEqual([1]);
    const left = () => store.abandoned('a').map((curve) => curve.series.get('loss')?.steps);
    expect(left()).toEqual([[2, 3]]);
    store.reset();
    store.covered(['a']);
    expect(asked).toHaveLength(4); // the curve again, and not what cannot have changed
    asked[3]?.resolve(answer([1, 2]));
    await settle();
    expect(left()).toEqual([[2, 3]]);
  });

  it('reads again when a run ended beyond what the page holds', async () => {
    const { store, asked, settle, held } = scripted();
    store.keep(['a']);
    store.covered(['a']);
    asked[0]?.resolve(answer([1, 2]));
    await settle();
    store.takeEvent({ kind: 'end', run: { id: 'a', progress: { step: '3', steps: '3' } } });
    asked[1]?.resolve(answer([1, 2, 3]));
    await settle();
    expect(held('a')).toEqual([1, 2, 3]);
  });

  it('forgets runs that are no longer drawn', async () => {
    const { store, asked, settle } = scripted();
    store.keep(['a']);
    store.covered(['a']);
    store.keep(['b']);
    asked[0]?.resolve(answer([1]));
    await settle();
    expect(store.curve('a')).toBeUndefined();
    expect(store.curve('b')).toBeDefined();
  });

  it('says which run the server does not have, and keeps other problems for people', async () => {
    const { store, asked, missing, settle } = scripted();
    store.keep(['a', 'b']);
    store.covered(['a', 'b']);
    asked[0]?.reject(new ApiError(404, 'NOT_FOUND', 'no run a'));
    asked[1]?.reject(new Error('network is down'));
    await settle();
    expect(missing).toEqual(['a']);
    expect(store.problem('b')).toBe('network is down');
  });

  it('keeps only the series that it draws', () => {
    const { store } = scripted();
    store.keep(['a']);
    const columns = { learning_rate: { steps: [1], values: [2e-3] } };
    store.takeEvent({ kind: 'points', run: 'a', attempt: 1, columns });
    expect([...(store.curve('a')?.series.keys() ?? [])]).toEqual([]);
  });
});
