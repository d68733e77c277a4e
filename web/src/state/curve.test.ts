import { describe, expect, it } from 'vitest';
import { Curve } from './curve';
import { thin } from './thin';

function loss(steps: number[], values: (number | string)[] = steps.map((step) => 1 / step)) {
  return { loss: { steps, values } };
}

function read(steps: number[], totalPoints = steps.length) {
  const values = steps.map((step) => 1 / step);
  return { loss: { steps, values, totalPoints, nonFinitePoints: 0 } };
}

function held(curve: Curve): number[] {
  return curve.series.get('loss')?.steps ?? [];
}

describe('a curve', () => {
  it('drops steps that it has already', () => {
    const curve = new Curve();
    curve.addLive(1, loss([1, 2, 3]));
    curve.addLive(1, loss([2, 3, 4]));
    expect(held(curve)).toEqual([1, 2, 3, 4]);
    expect(curve.series.get('loss')?.total).toBe(4);
  });

  it('is whole when the history comes after the first live points', () => {
    const curve = new Curve();
    curve.addLive(1, loss([5, 6]));
    curve.setHistory(read([1, 2, 3, 4, 5]));
    curve.addLive(1, loss([6, 7]));
    expect(held(curve)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(curve.series.get('loss')?.total).toBe(7);
  });

  it('counts points that the server thinned away', () => {
    const curve = new Curve();
    curve.setHistory(read([1, 500, 1000], 1000));
    curve.addLive(1, loss([1001]));
    expect(curve.series.get('loss')?.total).toBe(1001);
    expect(held(curve)).toEqual([1, 500, 1000, 1001]);
  });

  it('goes back to the step that a new attempt resumed from', () => {
    const curve = new Curve();
    curve.addLive(1, loss([1, 2, 3, 4]));
    expect(curve.beginAttempt(2, 2)).toBe(true);
    curve.addLive(2, loss([3], [9]));
    expect(held(curve)).toEqual([1, 2, 3]);
    expect(curve.series.get('loss')?.pointAt(3)?.value).toBe(9);
  });

  it('takes no points of an abandoned attempt, and no attempt twice', () => {
    const curve = new Curve();
    curve.beginAttempt(1, 0);
    curve.addLive(1, loss([1, 2, 3]));
    curve.beginAttempt(2, 0);
    curve.addLive(1, loss([4]));
    curve.addLive(2, loss([1]));
    expect(curve.beginAttempt(2, 0)).toBe(false);
    expect(held(curve)).toEqual([1]);
  });

  it('keeps non-finite values, counts them and knows the first', () => {
    const curve = new Curve();
    curve.addLive(1, loss([1, 2, 3, 4], [4.1, 'NaN', 'Infinity', '-Infinity']));
    const series = curve.series.get('loss');
    expect(series?.values).toEqual([4.1, Number.NaN, Infinity, -Infinity]);
    expect(series?.nonFinite).toBe(3);
    expect(series?.firstNonFiniteStep).toBe(2);
    curve.beginAttempt(2, 1);
    expect(series?.nonFinite).toBe(0);
    expect(series?.firstNonFiniteStep).toBeUndefined();
  });

  it('stays bounded over a long run and still tells the whole number', () => {
    const curve = new Curve();
    for (let start = 1; start < 100_000; start += 1000) {
      const steps = Array.from({ length: 1000 }, (_, index) => start + index);
      curve.addLive(1, loss(steps));
    }
    expect(held(curve).length).toBeLessThanOrEqual(8000);
    expect(curve.series.get('loss')?.total).toBe(100_000);
    expect(held(curve).at(-1)).toBe(100_000);
  });
});

describe('thinning', () => {
  it('keeps ends, spikes and gaps', () => {
    const steps = Array.from({ length: 10_000 }, (_, index) => index + 1);
    const values = steps.map(() => 1);
    values[4321] = 50;
    values[7000] = -3;
    values[8000] = Number.NaN;
    const kept = thin(steps, values, 200);
    expect(kept.steps.length).toBeLessThanOrEqual(200);
    for (const step of [1, 4322, 7001, 8001, 10_000]) expect(kept.steps).toContain(step);
    expect(kept.steps).toEqual([...kept.steps].sort((a, b) => a - b));
  });

  it('leaves a short curve as it is', () => {
    expect(thin([1, 2], [3, 4], 10)).toEqual({ steps: [1, 2], values: [3, 4] });
  });
});
