import { describe, expect, it } from 'vitest';
import { halfLives, smooth } from './smooth';

const steps = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('smooth', () => {
  it('leaves a constant what it is, from the first point on', () => {
    for (const value of smooth(steps(50), new Array(50).fill(4.2), 10)) {
      expect(value).toBeCloseTo(4.2, 12);
    }
  });

  it('is the usual average with bias correction for points at equal distances', () => {
    const values = [4, 2, 8, 1, 5];
    const factor = 2 ** (-1 / 3);
    let sum = 0;
    let weight = 0;
    const expected = values.map((value) => {
      sum = factor * sum + (1 - factor) * value;
      weight = factor * weight + (1 - factor);
      return sum / weight;
    });
    smooth(steps(5), values, 3).forEach((value, index) => {
      expect(value).toBeCloseTo(expected[index] as number, 12);
    });
  });

  it('counts distances and not points', () => {
    // The same step function, known at every step and, later, at every tenth.
    const dense = steps(200);
    const sparse = dense.filter((step) => step <= 100 || step % 10 === 0);
    const value = (step: number) => (step <= 100 ? 1 : 3);
    const whole = smooth(dense, dense.map(value), 20).at(-1) as number;
    const part = smooth(sparse, sparse.map(value), 20).at(-1) as number;
    expect(part).toBeCloseTo(whole, 2);
  });

  it('has a gap at what is not finite, and is not spoiled by it', () => {
    const values = [4, Number.NaN, 2, Number.POSITIVE_INFINITY, 2];
    const found = smooth(steps(5), values, 2);
    expect(found[1]).toBeNull();
    expect(found[3]).toBeNull();
    for (const index of [0, 2, 4]) expect(Number.isFinite(found[index])).toBe(true);
    expect(found[4]).toBeLessThan(found[2] as number);
  });

  it('begins with the first finite point, however late it comes', () => {
    expect(smooth([1, 2, 3], [Number.NaN, 7, 7], 5)).toEqual([null, 7, 7]);
  });

  it('without a half-life gives the points themselves', () => {
    expect(smooth([1, 2], [4, Number.NaN], 0)).toEqual([4, null]);
  });
});

describe('halfLives', () => {
  it('are rough, and none is longer than a third of the run', () => {
    expect(halfLives(180)).toEqual([3, 10, 30]);
    expect(halfLives(5)).toEqual([]);
    expect(halfLives(1_000_000).at(-1)).toBe(300_000);
  });
});
