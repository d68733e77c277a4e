import { describe, expect, it } from 'vitest';
import { choicesOf, parsePart, partText, runsOfPart, togglePart } from './preset_part';

const run = (layers: string, learningRate: number, seed?: string) => ({
  displayName: `${layers} at ${learningRate}`,
  spec: { layers, learningRate, placement: 'post', ...(seed ? { seed } : {}) },
});
const preset = {
  name: 'depths',
  runs: [run('1', 0.002), run('2', 0.002), run('1', 0.0005), run('2', 0.0005, '3')],
};
const possible = choicesOf(preset, ['layers', 'placement', 'learning_rate', 'seed']);

describe('a part of a preset', () => {
  it('is chosen by the settings that all runs give and that differ', () => {
    expect(possible).toEqual([
      { setting: 'layers', values: ['1', '2'] },
      { setting: 'learning_rate', values: ['2e-3', '5e-4'] },
    ]);
  });

  it('has the runs that fit all of it', () => {
    const names = (text: string) => runsOfPart(preset, text).map(({ displayName }) => displayName);
    expect(names('layers=2;learning_rate=5e-4')).toEqual(['2 at 0.0005']);
    expect(names('layers=1,2').length).toBe(4);
    expect(names('')).toHaveLength(4);
    expect(names('layers=7')).toEqual([]);
  });

  it('is changed value by value, and is nothing when it is all', () => {
    const without = togglePart('', possible, 'layers', '1');
    expect(without).toBe('layers=2');
    const less = togglePart(without, possible, 'learning_rate', '2e-3');
    expect(less).toBe('layers=2;learning_rate=5e-4');
    expect(togglePart(less, possible, 'layers', '1')).toBe('learning_rate=5e-4');
    expect(togglePart(without, possible, 'layers', '1')).toBe('');
  });

  it('is read from an address whatever stands there', () => {
    expect(parsePart('layers=1,,2; =3;nonsense;seed=')).toEqual([
      { setting: 'layers', values: ['1', '2'] },
      { setting: 'seed', values: [] },
    ]);
    expect(partText(parsePart('layers=1,2;seed=3'))).toBe('layers=1,2;seed=3');
  });
});
