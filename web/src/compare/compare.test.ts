import { describe, expect, it } from 'vitest';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { findOutcome, outcomes, spreadOf } from './outcomes';
import { publishedFor } from './published';
import { seedGroups, withoutSeed } from './seeds';
import { firstAxes, sweepGrid, sweepParts } from './sweep_grid';

function run(id: string, spec: object, finalLoss?: number | string, displayName = id): RunJson {
  return {
    id,
    displayName,
    effectiveSpec: spec,
    summary: finalLoss === undefined ? {} : { finalLoss: finalLoss as number },
  };
}

describe('seedGroups', () => {
  it('puts runs together that differ only in their seed', () => {
    const groups = seedGroups([
      run('a', { seed: '1', layers: '6' }, 1, 'layers=6 seed=1'),
      run('b', { seed: '1', layers: '12' }),
      run('c', { layers: '6', seed: '2' }, 1, 'layers=6 seed=2'),
      run('d', { layers: '6', seed: '3', threads: '2' }, 1, 'layers=6 seed=3'),
    ]);
    expect(groups.map(({ name, runs }) => [name, runs.map(({ id }) => id).join()])).toEqual([
      ['layers=6 · 3 seeds', 'a,c,d'],
      ['b', 'b'],
    ]);
  });
  it('leaves runs alone whose settings are not known', () => {
    expect(seedGroups([{ id: 'a' }, { id: 'b' }]).length).toBe(2);
  });
  it.each([
    ['post · seed 3', 'post'],
    ['seed=3 layers=6', 'layers=6'],
    ['reseeded 3', 'reseeded 3'],
  ])('calls "%s" "%s"', (name, without) => expect(withoutSeed(name)).toBe(without));
});

describe('outcomes', () => {
  it('of several runs have a median, and NaN is the worst', () => {
    const loss = findOutcome('final_loss');
    const runs = [run('a', {}, 3), run('b', {}, 1), run('c', {}, 'NaN'), run('d', {})];
    expect(spreadOf(loss, runs)).toEqual({ median: 3, low: 1, high: Infinity, count: 3 });
    expect(spreadOf(loss, [run('d', {})])).toBeUndefined();
    expect(spreadOf(loss, [run('c', {}, 'NaN'), run('d', {})])?.median).toBeNaN();
  });
  it('have no first bad step where there was none', () => {
    const kind = findOutcome('first_bad_step');
    expect(kind.of({ summary: {} })).toBeUndefined();
    expect(kind.of({ summary: { firstBadStep: '12' } })).toBe(12);
    expect(findOutcome('nonsense')).toBe(outcomes[0]);
  });
});

describe('sweepGrid', () => {
  const runs = [
    run('a', { layers: '12', learningRate: 2e-3 }, 4),
    run('b', { layers: '6', learningRate: 2e-3 }, 2),
    run('c', { layers: '6', learningRate: 5e-4, seed: '1' }, 1),
    run('d', { layers: '6', learningRate: 5e-4, seed: '2' }, 2),
  ];
  it('has numbers in order, seeds as their median and holes where there is no run', () => {
    const grid = sweepGrid(runs, 'layers', 'learning_rate', findOutcome('final_loss'));
    expect(grid.rows).toEqual(['6', '12']);
    expect(grid.columns).toEqual(['5e-4', '2e-3']);
    expect(grid.cells.map((row) => row.map((cell) => cell?.spread?.median))).toEqual([
      [1.5, 2],
      [undefined, 4],
    ]);
  });
  it('is a table of its own for each value of a third setting', () => {
    const both = ['pre', 'post'].flatMap((placement) =>
      runs.map((one) => ({ ...one, effectiveSpec: { ...one.effectiveSpec, placement } })),
    );
    const differing = ['layers', 'learning_rate', 'placement', 'seed'];
    const parts = sweepParts(both, differing, ['layers', 'learning_rate']);
    expect(parts.map(({ name, runs }) => [name, runs.length])).toEqual([
      ['placement=pre', 4],
      ['placement=post', 4],
    ]);
    expect(sweepParts(runs, differing, ['layers', 'learning_rate', 'placement'])).toEqual([
      { name: '', runs },
    ]);
  });
  it('begins with the settings that vary most', () => {
    const differing = [
      { name: 'seed', values: ['1', '2', '3', '4'] },
      { name: 'placement', values: ['pre', 'post', 'pre', 'post'] },
      { name: 'layers', values: ['2', '6', '12', '6'] },
      { name: 'learning_rate', values: ['1e-3', '2e-3', '4e-3', '8e-3'] },
    ];
    expect(firstAxes(differing)).toEqual({ row: 'layers', column: 'learning_rate' });
    expect(firstAxes(differing.slice(0, 2))).toEqual({ row: 'placement', column: '' });
    expect(firstAxes([])).toEqual({ row: '', column: '' });
  });
});

describe('publishedFor', () => {
  const preset = {
    runs: [
      {
        displayName: 'Pre',
        spec: { placement: 'pre' },
        published: { finalLoss: 0.00165, maxGradientNorm: 1.004 },
        band: 'within 0.1 %',
      },
    ],
  };
  it('is there for the same run with the same settings', () => {
    const found = publishedFor(preset, { displayName: 'Pre', spec: { placement: 'pre' } });
    expect(found?.figures.finalLoss).toBe(0.00165);
    expect(found?.band).toBe('within 0.1 %');
  });
  it('is not there for a run of another length', () => {
    const spec = { placement: 'pre', steps: '30' };
    expect(publishedFor(preset, { displayName: 'Pre', spec })).toBeUndefined();
    expect(publishedFor(undefined, { displayName: 'Pre' })).toBeUndefined();
  });
});
