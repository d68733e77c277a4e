import { describe, expect, it } from 'vitest';
import { jsonName, type Setting } from '../state/settings';
import { differingSettings, settingNames, settingRows, shortSetting, snakeCase } from './settings';

const base = { type: 'text' as const, group: 'model', help: '' };
const declared: Setting[] = [
  { ...base, name: 'layers', type: 'integer', default: '12', unit: 'blocks' },
  { ...base, name: 'learning_rate', type: 'number', default: '2e-3' },
  { ...base, name: 'norm', default: 'auto', help: 'kind of norm' },
  { ...base, name: 'bias', type: 'switch', default: 'true' },
];

describe('settingRows', () => {
  const rows = (given: object, effective: object = {}) =>
    settingRows(declared, given, {
      layers: '12',
      learningRate: 0.002,
      norm: 'layernorm',
      bias: true,
      ...effective,
    });

  it('has what the run was trained with, in the order of the declarations', () => {
    expect(rows({}).map(({ name, value }) => `${name}=${value}`)).toEqual([
      'layers=12',
      'learning_rate=2e-3',
      'norm=layernorm',
      'bias=true',
    ]);
  });
  it('tells what somebody has set from what follows from the defaults', () => {
    expect(rows({}).filter(({ differs }) => differs)).toEqual([]);
    const given = { layers: '6', learningRate: 0.002, norm: 'rmsnorm', bias: false };
    const differing = rows(given, given).filter(({ differs }) => differs);
    expect(differing.map(({ name }) => name)).toEqual(['layers', 'norm', 'bias']);
  });
});

describe('differingSettings', () => {
  it('are those that are not the same in all runs', () => {
    const specs = [
      { layers: '12', learningRate: 0.002, placement: 'pre' },
      { layers: '12', learningRate: 0.004, placement: 'post' },
    ];
    expect(settingNames(specs)).toEqual(['layers', 'learning_rate', 'placement']);
    expect(differingSettings(settingNames(specs), specs)).toEqual([
      { name: 'learning_rate', values: ['2e-3', '4e-3'] },
      { name: 'placement', values: ['pre', 'post'] },
    ]);
    expect(differingSettings(['layers'], [])).toEqual([]);
  });
});

describe('shortSetting', () => {
  it.each([
    ['0.6666666666666667', '0.6667'],
    ['1000000000000', '1000000000000'],
    ['2e-3', '2e-3'],
    ['post-single', 'post-single'],
  ])('of %s is %s', (text, short) => expect(shortSetting(text)).toBe(short));
});

describe('names', () => {
  it('go both ways', () => {
    for (const name of ['layers', 'learning_rate', 'd_model', 'beta_1', 'stop_on_non_finite']) {
      expect(snakeCase(jsonName(name)).replace(/([a-z])(\d)/, '$1_$2')).toBe(name);
    }
  });
});
