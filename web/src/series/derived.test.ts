import { describe, expect, it } from 'vitest';
import { difference, medianBand, quantile } from './derived';
import { type Points, unionOfSteps, valueAt, within } from './points';

function points(...given: [number, number][]): Points {
  return { steps: given.map(([step]) => step), values: given.map(([, value]) => value) };
}

describe('valueAt', () => {
  const curve = points([1, 4], [3, 2], [5, Number.NaN], [7, 1]);
  it('is a point, or on the line between two', () => {
    expect(valueAt(curve, 3)).toBe(2);
    expect(valueAt(curve, 2)).toBe(3);
    expect(valueAt(curve, 5)).toBeNaN();
  });
  it('is nothing outside and where the line is broken', () => {
    expect(valueAt(curve, 0)).toBeUndefined();
    expect(valueAt(curve, 8)).toBeUndefined();
    expect(valueAt(curve, 4)).toBeUndefined();
    expect(valueAt(curve, 6)).toBeUndefined();
  });
});

describe('difference', () => {
  it('is taken where both runs have come, at the points of either', () => {
    const a = points([1, 4], [2, 3], [3, 2], [4, 1]);
    const b = points([1, 1], [3, 1]);
    expect(difference(a, b)).toEqual(points([1, 3], [2, 2], [3, 1]));
  });
  it('is not finite where one of them is not', () => {
    expect(difference(points([1, Number.NaN]), points([1, 2])).values).toEqual([Number.NaN]);
  });
});

describe('medianBand', () => {
  it('is the middle run, between the lowest and the highest', () => {
    const band = medianBand([
      points([1, 5], [2, 3]),
      points([1, 1], [2, 2]),
      points([1, 2], [2, 9]),
    ]);
    expect(band.median).toEqual([2, 3]);
    expect(band.low).toEqual([1, 2]);
    expect(band.high).toEqual([5, 9]);
  });
  it('takes the quartiles of five and more', () => {
    const band = medianBand([1, 2, 3, 4, 100].map((value) => points([1, value])));
    expect([band.low[0], band.median[0], band.high[0]]).toEqual([2, 3, 4]);
  });
  it('counts a run that diverged as the worst', () => {
    const band = medianBand([1, 2, Number.NaN].map((value) => points([1, value])));
    expect(band.median).toEqual([2]);
    expect(band.high).toEqual([Infinity]);
  });
  it('ends where fewer than half have come', () => {
    const band = medianBand([
      points([1, 1], [2, 1], [3, 1]),
      points([1, 3], [2, 3]),
      points([1, 2]),
    ]);
    expect(band.steps).toEqual([1, 2]);
    expect(band.count).toEqual([3, 2]);
    expect(band.median).toEqual([2, 2]);
  });
});

describe('quantile', () => {
  it('keeps infinities and needs no numbers', () => {
    expect(quantile([1, Infinity], 1)).toBe(Infinity);
    expect(quantile([Infinity, Infinity], 0.5)).toBe(Infinity);
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe('points', () => {
  it('are cut at both ends of a range', () => {
    const curve = points([1, 1], [3, 3], [5, 5], [7, 7]);
    expect(within(curve, 3, 5)).toEqual(points([3, 3], [5, 5]));
    expect(within(curve, 8, 9)).toEqual(points());
  });
  it('of several curves have the steps of all', () => {
    expect(unionOfSteps([points([1, 0], [4, 0]), points([2, 0])])).toEqual([1, 2, 4]);
  });
});
