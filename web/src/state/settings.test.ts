import { describe, expect, it } from 'vitest';
import { jsonName, type Setting, sameValue, settingOf, settingText } from './settings';

const rate: Setting = {
  name: 'learning_rate',
  type: 'number',
  group: 'training',
  help: 'learning rate',
  default: '2e-3',
};

describe('settings', () => {
  it('have names as declared and in JSON', () => {
    expect(jsonName('learning_rate')).toBe('learningRate');
    expect(jsonName('d_model')).toBe('dModel');
    expect(jsonName('beta1')).toBe('beta1');
    expect(settingOf({ learningRate: 0.002 }, 'learning_rate')).toBe(0.002);
    expect(settingOf({ dModel: '64' }, 'd_model')).toBe('64');
    expect(settingOf(undefined, 'd_model')).toBeUndefined();
  });

  it('are written short, and exactly', () => {
    const texts: [string | number | boolean | undefined, string][] = [
      [0.002, '2e-3'],
      [1e-8, '1e-8'],
      [0.95, '0.95'],
      [0, '0'],
      [1234567.5, '1.2345675e6'],
      ['12', '12'],
      [true, 'true'],
      [undefined, ''],
    ];
    for (const [value, text] of texts) expect(settingText(value)).toBe(text);
    for (const value of [0.1 + 0.2, 1 / 3e7, 6.02e23]) {
      expect(Number(settingText(value))).toBe(value);
    }
  });

  it('are the same however a number is written', () => {
    expect(sameValue(rate, '2e-3', '0.002')).toBe(true);
    expect(sameValue(rate, '2e-3', '0.003')).toBe(false);
    expect(sameValue(rate, '', '0')).toBe(false);
    expect(sameValue({ ...rate, type: 'text' }, '1', '1.0')).toBe(false);
  });
});
