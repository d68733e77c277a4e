import { describe, expect, it } from 'vitest';
import { columnNames, columnsOf, nextOrder, ownColumns, toggleColumn } from './columns';

const run = {
  user: 'ada',
  labels: ['best', 'x'],
  device: 'auto',
  effectiveSpec: { layers: '12', learningRate: 0.002, causal: true },
  summary: { finalLoss: 0.0046, maxGradientNorm: 'Infinity', parameterCount: '610176' },
  attempts: [{ number: 1, device: 'cpu:1' }],
} as const;
const text = (name: string) =>
  columnsOf([name], () => '')[0]?.text(
    { ...run, labels: [...run.labels] } as never,
    () => undefined,
  );

describe('columns', () => {
  it('are those of the address, each once, or what fits', () => {
    expect(columnNames('layers,loss,layers,<b>,,seed', 'wide')).toEqual(['layers', 'loss', 'seed']);
    expect(columnNames('', 'wide')).toEqual([]);
    expect(columnNames(undefined, 'phone').length).toBeLessThan(
      columnNames(undefined, 'wide').length,
    );
  });

  it('show settings and numbers of a run, and nothing where there is none', () => {
    expect(text('layers')).toBe('12');
    expect(text('learning_rate')).toBe('2e-3');
    expect(text('causal')).toBe('true');
    expect(text('no_such_setting')).toBe('');
    expect(text('loss')).toBe('0.00460');
    expect(text('max_gradient_norm')).toBe('∞');
    expect(text('validation_loss')).toBe('');
    expect(text('parameters')).toBe('610 k');
    expect(text('labels')).toBe('best, x');
    expect(text('device')).toBe('cpu:1');
  });

  it('have names of their own', () => {
    expect(new Set(ownColumns.map((one) => one.name)).size).toBe(ownColumns.length);
  });

  it('come and go: settings before the rest', () => {
    expect(toggleColumn(['layers', 'loss'], 'seed')).toEqual(['layers', 'seed', 'loss']);
    expect(toggleColumn(['layers', 'loss'], 'min_loss')).toEqual(['layers', 'loss', 'min_loss']);
    expect(toggleColumn(['layers', 'loss'], 'loss')).toEqual(['layers']);
  });

  it('order by rising, falling and not at all', () => {
    expect(nextOrder('', 'layers')).toBe('layers');
    expect(nextOrder('layers', 'layers')).toBe('layers desc');
    expect(nextOrder('layers desc', 'layers')).toBeUndefined();
    expect(nextOrder('layers desc', 'seed')).toBe('seed');
  });
});
