import { describe, expect, it } from 'vitest';
import { Series } from '../state/curve';
import { linearRange, linearTicks, logRange, logTicks, stepRange } from './axes';
import { chartData as dataOf, offAxisPoints, plotted } from './chart_data';
import { pointNote } from './point_note';

function series(points: [number, number][]): Series {
  const made = new Series();
  for (const [step, value] of points) made.append(step, value);
  return made;
}

const chartData = (curves: (Series | undefined)[], others: Series[] = []) =>
  dataOf(
    curves.map((one) => one && plotted(one, 'log')),
    others.map((one) => plotted(one, 'log')),
  );

describe('chartData', () => {
  it('lets a shorter curve simply end', () => {
    const data = chartData([
      series([
        [1, 4],
        [2, 3],
        [3, 2],
      ]),
      series([[1, 5]]),
      undefined,
    ]);
    expect(data.xs).toEqual([1, 2, 3]);
    expect(data.values[0]).toEqual([4, 3, 2]);
    expect(data.values[1]).toEqual([5, undefined, undefined]);
    expect(data.values[2]).toEqual([undefined, undefined, undefined]);
  });

  it('tells a gap from a step of another curve', () => {
    const data = chartData([
      series([
        [1, 4],
        [3, Number.NaN],
        [5, 2],
      ]),
      series([
        [2, 1],
        [5, 1],
      ]),
    ]);
    expect(data.xs).toEqual([1, 2, 3, 5]);
    expect(data.values[0]).toEqual([4, undefined, null, 2]);
    expect(data.values[1]).toEqual([undefined, 1, undefined, 1]);
  });

  it('leaves out what a log axis cannot show', () => {
    const data = chartData([
      series([
        [1, 0],
        [2, -1],
        [3, 1],
        [4, Infinity],
      ]),
    ]);
    expect(data.values[0]).toEqual([null, null, 1, null]);
  });

  it('marks what is not finite, and neither a gap nor what is missing', () => {
    const curve = series([
      [1, 4],
      [2, Number.NaN],
      [3, Infinity],
      [4, 0],
      [6, -Infinity],
    ]);
    const data = chartData([curve, undefined]);
    expect(data.xs).toEqual([1, 2, 3, 4, 6]);
    expect(data.values[0]).toEqual([4, null, null, null, null]);
    expect(offAxisPoints(curve, 'linear')).toEqual([
      { x: 2, value: Number.NaN },
      { x: 3, value: Infinity },
      { x: 6, value: -Infinity },
    ]);
  });

  it('lets the cursor stop where only another series has a point', () => {
    const loss = series([
      [1, 4],
      [3, 2],
    ]);
    const norm = series([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
    expect(chartData([loss], [norm])).toEqual({
      xs: [1, 2, 3],
      values: [[4, undefined, 2]],
    });
  });

  it('shows zero and less on a linear axis', () => {
    const curve = series([
      [1, 0],
      [2, -1],
      [3, Number.NaN],
    ]);
    expect(plotted(curve, 'linear').values).toEqual([0, -1, null]);
    expect(plotted(curve, 'log').values).toEqual([null, null, null]);
  });
});

describe('axes', () => {
  it('span the planned steps of a short run, and an eighth at least of a long one', () => {
    expect(stepRange(10, 180)).toEqual([0, 180]);
    expect(stepRange(0, 0)).toEqual([0, 1]);
    expect(stepRange(5000, 1_000_000)).toEqual([0, 40_000]);
    expect(stepRange(900_000, 1_000_000)).toEqual([0, 1_000_000]);
  });

  it('have decades as ticks, and more between when there are few', () => {
    expect(logTicks(0.0012, 6)).toEqual([0.01, 0.1, 1]);
    expect(logTicks(0.016, 6)).toEqual([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]);
    expect(logTicks(1.4, 3.2)).toEqual([1.5, 2, 2.5, 3]);
    expect(logTicks(1e-12, 1e12).length).toBeLessThan(11);
  });

  it('have round numbers as ticks when they are linear', () => {
    expect(linearTicks(0, 4.2, 5)).toEqual([0, 1, 2, 3, 4]);
    expect(linearTicks(-0.011, 0.012, 5)).toEqual([-0.01, -0.005, 0, 0.005, 0.01]);
    expect(linearTicks(3, 3, 5)).toEqual([3]);
    expect(linearRange(0, 10)).toEqual([-0.4, 10.4]);
    const [low, high] = linearRange(2, 2);
    expect(low).toBeLessThan(2);
    expect(high).toBeGreaterThan(2);
    expect(linearRange(0, 0)).toEqual([-1, 1]);
  });

  it('never collapse on equal values', () => {
    const [low, high] = logRange(2, 2);
    expect(low).toBeLessThan(1.5);
    expect(high).toBeGreaterThan(2.5);
  });
});

describe('pointNote', () => {
  const short = () =>
    series([
      [1, 4],
      [2, 3],
    ]);

  it('states what is there', () => {
    expect(pointNote([])).toBe('');
    expect(pointNote([short()])).toBe('2 of 2 points');
    expect(pointNote([short(), short()])).toBe('2 of 2 points each');
    expect(pointNote([short(), series([[1, 4]])])).toBe('3 of 3 points in 2 runs');
  });

  it('misses nothing at or below zero on a linear axis', () => {
    const below = series([
      [1, 0],
      [2, -1],
    ]);
    expect(pointNote([below], 'linear')).toBe('2 of 2 points');
  });

  it('says when points are left out', () => {
    const long = short();
    long.total = 1_000_000;
    expect(pointNote([long])).toBe('1,000,000 points, 2 drawn, extremes kept');
  });

  it('says what cannot be drawn', () => {
    const bad = series([
      [1, 4],
      [2, 0],
      [3, -1],
      [1234, Number.NaN],
    ]);
    expect(pointNote([bad])).toBe(
      '4 of 4 points · ⚡\uFE0E 1 NaN, first at step 1,234 · 2 at or below zero, off the log axis',
    );
  });

  it('counts at least what it knows of at or below zero when points are left out', () => {
    const thinned = series([
      [1, 4],
      [2, 0],
    ]);
    thinned.total = 500;
    expect(pointNote([thinned])).toMatch(/· at least 1 at or below zero, off the log axis$/);
  });

  it('tells kinds of what is not finite apart, while it has them all', () => {
    const bad = series([
      [1, Number.NaN],
      [2, Infinity],
      [3, Number.NaN],
      [4, -Infinity],
    ]);
    const text = '4 of 4 points · ⚡\uFE0E 2 NaN, 1 +Infinity, 1 −Infinity, first at step 1';
    expect(pointNote([bad])).toBe(text);
    bad.nonFinite = 1000;
    bad.total = 5000;
    expect(pointNote([bad])).toBe(
      '5,000 points, 4 drawn, extremes kept · ⚡\uFE0E 1,000 not finite, first at step 1',
    );
  });
});
