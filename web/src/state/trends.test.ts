import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SeriesAnswer } from '../api/events';
import { TrendStore, trendPath, trendPoints } from './trends';

const answer = (steps: number[], values: (number | string)[]): SeriesAnswer => ({
  steps,
  values,
  totalPoints: steps.length,
  nonFinitePoints: 0,
});
const progress = (run: string, step: number, finalLoss: number) =>
  ({ kind: 'progress', run, progress: { step: String(step) }, summary: { finalLoss } }) as const;
const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('TrendStore', () => {
  it('reads only rows that are seen, each once, a few at a time', async () => {
    const asked: string[] = [];
    let most = 0;
    let now = 0;
    const store = new TrendStore(async (run) => {
      asked.push(run);
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
      return answer([1, 2], [2, 1]);
    });
    store.show(['a', 'b', 'c', 'd', 'e']);
    await settle();
    store.show(['e', 'f']);
    await settle();
    expect(asked).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(most).toBe(2);
    expect(store.trend('a')).toEqual({ steps: [1, 2], values: [2, 1] });
    store.stop();
  });

  it('passes over rows that were scrolled by', async () => {
    const asked: string[] = [];
    const store = new TrendStore(async (run) => {
      asked.push(run);
      return answer([], []);
    });
    store.show(['a', 'b', 'c', 'd']);
    store.show(['x', 'y']);
    await settle();
    expect(asked).toEqual(['a', 'b', 'x', 'y']);
  });

  it('draws a run on by its progress, and drops repeats', async () => {
    const store = new TrendStore(async () => answer([1, 5], [4, 3]));
    store.show(['a']);
    store.takeEvent(progress('a', 6, 2)); // while it is read
    await settle();
    store.takeEvent(progress('a', 7, 1));
    store.takeEvent(progress('a', 7, 9));
    expect(store.trend('a')).toEqual({ steps: [1, 5, 6, 7], values: [4, 3, 2, 1] });
  });

  it('stays small however long a run is, and keeps a spike', async () => {
    const store = new TrendStore(async () => answer([], []));
    store.show(['a']);
    await settle();
    for (let step = 1; step <= 10_000; step++) {
      store.takeEvent(progress('a', step, step === 5000 ? 1e6 : 1));
    }
    expect(store.trend('a')?.steps.length).toBeLessThanOrEqual(2 * trendPoints);
    expect(store.trend('a')?.values).toContain(1e6);
  });

  it('reads again after another attempt, after missed events, and after an end that it missed', async () => {
    let reads = 0;
    const store = new TrendStore(async () => {
      reads++;
      return answer([reads], [reads]);
    });
    store.show(['a']);
    await settle();
    store.takeEvent({ kind: 'attempt', run: 'a', attempt: { number: 2 } });
    await settle();
    store.reset();
    await settle();
    expect(reads).toBe(3);
    store.takeEvent({ kind: 'end', run: { id: 'a', progress: { step: '3' } } });
    await settle();
    expect(reads).toBe(3);
    store.takeEvent({ kind: 'end', run: { id: 'a', progress: { step: '180' } } });
    await settle();
    expect(reads).toBe(4);
    expect(store.trend('a')).toEqual({ steps: [4], values: [4] });
  });

  it('puts nothing of an earlier attempt behind what it reads of a later one', async () => {
    const answers = [answer([1, 90], [4, 1]), answer([1, 40], [4, 2])];
    const store = new TrendStore(async () => answers.shift());
    store.show(['a']);
    store.takeEvent({ kind: 'attempt', run: 'a', attempt: { number: 2 } });
    store.takeEvent(progress('a', 41, 1.9));
    await settle();
    expect(store.trend('a')).toEqual({ steps: [1, 40, 41], values: [4, 2, 1.9] });
  });

  it('tries again what could not be read', async () => {
    let works = false;
    const store = new TrendStore(async () => {
      if (!works) throw new Error('away');
      return answer([1], [1]);
    });
    store.show(['a']);
    await settle();
    expect(store.trend('a')).toBeUndefined();
    works = true;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(store.trend('a')).toEqual({ steps: [1], values: [1] });
  });
});

describe('trendPath', () => {
  it('spans the planned steps, by the logarithm', () => {
    const path = trendPath({ steps: [0, 50, 100], values: [100, 10, 1] }, 200, 60, 20);
    expect(path).toBe('M0.0 1.0L15.0 10.0L30.0 19.0');
  });

  it('is linear where a value is zero or less', () => {
    const path = trendPath({ steps: [0, 50, 100], values: [100, 50, 0] }, 100, 60, 20);
    expect(path).toBe('M0.0 1.0L30.0 10.0L60.0 19.0');
  });

  it('breaks where a value is not finite', () => {
    const values = [4, Number.NaN, 2, Number.POSITIVE_INFINITY];
    const path = trendPath({ steps: [1, 2, 3, 4], values }, 4, 40, 20);
    expect(path).toBe('M10.0 2.0M30.0 18.0');
    expect(trendPath({ steps: [1], values: [Number.NaN] }, 4, 40, 20)).toBe('');
  });

  it('draws the noise of a level curve small', () => {
    const path = trendPath({ steps: [0, 1, 2], values: [4, 4.04, 3.96] }, 2, 40, 20);
    const heights = [...path.matchAll(/ ([\d.]+)/g)].map((found) => Number(found[1]));
    expect(Math.max(...heights) - Math.min(...heights)).toBeLessThan(1);
    expect(heights.every((height) => Math.abs(height - 10) < 1)).toBe(true);
  });

  it('draws a level line in the middle', () => {
    expect(trendPath({ steps: [0, 2], values: [3, 3] }, 2, 40, 20)).toBe('M0.0 10.0L40.0 10.0');
  });
});
