import { describe, expect, it } from 'vitest';
import type { Points } from '../series/points';
import { blockGrid, colourRange, colourShare, columnAt, profileAt, profileNote } from './grid';
import { blocksOf, findMetric, seriesOf } from './metrics';
import { hex, viridis } from './viridis';

function points(...given: [number, number][]): Points {
  return { steps: given.map(([step]) => step), values: given.map(([, value]) => value) };
}
const all = { from: 0, to: 1e9 };

describe('blockGrid', () => {
  const first = points([1, 1], [10, 2], [20, 3]);
  const second = points([1, 4], [20, 6]);

  it('has a row for each block and a column for each step', () => {
    const grid = blockGrid([first, second, undefined], all, 100);
    expect(grid.rows).toBe(3);
    expect(grid.steps).toEqual([1, 10, 20]);
    expect(grid.values).toEqual([1, 2, 3, 4, undefined, 6, undefined, undefined, undefined]);
    expect([0, 1, 9, 14, 16, 99].map((step) => columnAt(grid, step))).toEqual([0, 0, 1, 1, 2, 2]);
    expect(columnAt(blockGrid([], all, 10), 5)).toBe(-1);
  });

  it('begins with the column that reaches into the range', () => {
    expect(blockGrid([first], { from: 12, to: 20 }, 100).steps).toEqual([10, 20]);
    expect(blockGrid([first], { from: 10, to: 15 }, 100).steps).toEqual([10]);
  });

  it('keeps the largest value where steps share a column, and a NaN before all', () => {
    const long = points(...Array.from({ length: 100 }, (_, i) => [i + 1, 1] as [number, number]));
    (long.values as number[])[41] = 50;
    (long.values as number[])[77] = Number.NaN;
    const grid = blockGrid([long], all, 10);
    expect(grid.steps.length).toBe(10);
    expect(grid.values).toEqual([1, 1, 1, 1, 50, 1, 1, Number.NaN, 1, 1]);
  });
});

describe('a thinned curve', () => {
  const thinned = { ...points([1, 1], [50, 2], [90, 3]), thinned: true };
  const other = { ...points([1, 5], [40, 6], [99, 7]), thinned: true };
  it('has its last value where others have points, up to its end', () => {
    const grid = blockGrid([thinned, other], all, 100);
    expect(grid.steps).toEqual([1, 40, 50, 90, 99]);
    expect(grid.values).toEqual([1, 1, 2, 3, undefined, 5, 6, 6, 6, 7]);
  });
  it('has one in every profile', () => {
    expect(profileAt([thinned, other], 95)).toEqual({ step: 90, values: [3, 6], steps: [90, 40] });
  });
});

describe('colours', () => {
  it('span what has a place on the scale, and count the rest', () => {
    const values = [0.01, 100, 0, -1, Number.NaN, Infinity, undefined];
    const range = colourRange(values, 'log');
    expect(range).toEqual({ low: 0.01, high: 100, offScale: 2, nonFinite: 2 });
    expect(colourShare(1, range, 'log')).toBeCloseTo(0.5, 12);
    expect(colourShare(0, range, 'log')).toBeUndefined();
    expect(colourRange(values, 'linear').low).toBe(-1);
  });
  it('of one value are in the middle, and of none do no harm', () => {
    for (const scale of ['log', 'linear'] as const) {
      expect(colourShare(3, colourRange([3, 3], scale), scale)).toBeCloseTo(0.5, 12);
      expect(colourRange([], scale).high).toBeGreaterThan(colourRange([], scale).low);
    }
    expect(colourShare(0, colourRange([0], 'linear'), 'linear')).toBe(0.5);
  });
  it('go from dark blue to yellow', () => {
    expect([hex(viridis(0)), hex(viridis(1))]).toEqual(['#440154', '#fde725']);
    const light = (share: number) => viridis(share).reduce((sum, channel) => sum + channel);
    expect(light(0.25)).toBeLessThan(light(0.75));
  });
});

describe('profileAt', () => {
  const curves = [points([1, 1], [10, 2]), points([1, 3], [10, 4]), undefined];
  it('is what was measured last', () => {
    expect(profileAt(curves, 9)).toEqual({
      step: 1,
      values: [1, 3, undefined],
      steps: [1, 1, undefined],
    });
    expect(profileAt(curves, 500)?.values).toEqual([2, 4, undefined]);
    expect(profileAt(curves, 0)).toBeUndefined();
  });
});

describe('the note of profiles', () => {
  const profile = (values: number[], steps = values.map(() => 5)) => ({ step: 5, values, steps });
  it('says what has no place in the picture', () => {
    expect(profileNote([profile([1, 2])], 'log')).toBe('');
    const bad = profile([Number.NaN, 0, 3, Infinity]);
    expect(profileNote([bad, undefined], 'log')).toBe(
      '2 of 4 not finite · 1 of 4 at or below zero',
    );
    expect(profileNote([bad], 'linear')).toBe('2 of 4 not finite');
  });
  it('says that values are of several steps', () => {
    expect(profileNote([profile([1, 2], [3, 5])], 'log')).toBe(
      'of thinned curves: values of steps 3 to 5; zoom in for one step',
    );
  });
});

describe('blocks', () => {
  it('are those of the model, the input first', () => {
    const metric = findMetric('stream_rms');
    expect(blocksOf({ layers: '2' }).map((block) => seriesOf(block, metric))).toEqual([
      'block/1/stream_rms',
      'block/2/stream_rms',
    ]);
    const both = blocksOf({ model: 'encdec', layers: '2', decoderLayers: '1' });
    expect(both.map(({ label }) => label)).toEqual(['E1', 'E2', 'D1']);
    expect(both.map(({ prefix }) => prefix)).toEqual([
      'encoder_block/1',
      'encoder_block/2',
      'block/1',
    ]);
    expect(blocksOf(undefined)).toEqual([]);
    expect(findMetric('unknown').name).toBe('gradient_norm');
  });
});
