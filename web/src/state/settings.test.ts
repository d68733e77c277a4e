import { describe, expect, it } from 'vitest';
import { jsonName, type Setting, sameValue, settingOf } from './settings';

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

  it('are the same however a number is written', () => {
    expect(sameValue(rate, '2e-3', '0.002')).toBe(true);
    expect(sameValue(rate, '2e-3', '0.003')).toBe(false);
    expect(sameValue(rate, '', '0')).toBe(false);
    expect(sameValue({ ...rate, type: 'text' }, '1', '1.0')).toBe(false);
  });
});
