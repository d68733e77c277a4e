import { describe, expect, it } from 'vitest';
import { Series } from '../state/curve';
import { logRange, logTicks, stepRange } from './axes';
import { chartData } from './chart_data';
import { pointNote } from './point_note';

function series(points: [number, number][]): Series {
  const made = new Series();
  for (const [step, value] of points) made.append(step, value);
  return made;
}

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
    expect(data.steps).toEqual([1, 2, 3]);
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
    expect(data.steps).toEqual([1, 2, 3, 5]);
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
      '4 of 4 points · ⚡\uFE0E 1 not finite, first at step 1,234 · 2 at or below zero, off the log axis',
    );
  });
});
