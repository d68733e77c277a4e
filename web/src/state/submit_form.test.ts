/// <reference types="node" />
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import type { Setting } from './settings';
import {
  bodyOf,
  changedSettings,
  commandLine,
  counts,
  type Draft,
  draftOf,
  givenOf,
  noBase,
  queryValue,
  settingOfField,
  shellWord,
  specOf,
} from './submit_form';

const setting = (name: string, type: Setting['type'], value: string, more = {}): Setting => ({
  name,
  type,
  group: 'model',
  help: '',
  default: value,
  ...more,
});
const layers = setting('layers', 'integer', '12');
const rate = setting('learning_rate', 'number', '2e-3');
const causal = setting('causal', 'switch', 'true');
const data = setting('data', 'text', 'arithmetic', { choicePrefix: 'text:' });
const unit = setting('text_unit', 'text', 'bytes', { needs: 'data=text' });
const floor = setting('learning_rate_floor', 'number', '0', { needs: 'schedule=cosine|linear' });
const schedule = setting('schedule', 'text', 'constant');
const scale = setting('residual_scale', 'number', '1');
const all = [layers, rate, causal, data, unit, schedule, floor, scale];

const draft = (query: Record<string, string>, given = {}): Draft =>
  draftOf(query, { ...noBase, given }, all);

describe('a draft', () => {
  it('is what the address gives, and no foreign names', () => {
    const one = draft({ layers: '6', causal: 'false', device: 'cpu:0', held: 'yes', foreign: '1' });
    expect(one.given).toEqual({ layers: '6', causal: 'false' });
    expect(bodyOf(one, all)).toEqual({
      spec: { layers: '6', causal: false },
      device: 'cpu:0',
      held: true,
    });
  });

  it('begins with a run, which the address changes and takes back', () => {
    const spec = { layers: '6', learningRate: 0.0005, causal: false };
    const base = givenOf({ spec }, all);
    expect(base).toEqual({ layers: '6', learning_rate: '5e-4', causal: 'false' });
    expect(draft({ from: 'x', layers: '', learning_rate: '1e-3' }, base).given).toEqual({
      learning_rate: '1e-3',
      causal: 'false',
    });
  });

  it('puts into the address no more than what differs', () => {
    const base = { layers: '6' };
    const cases: [Setting, string, string | undefined][] = [
      [rate, '2e-3', undefined], // the default
      [rate, '0.002', undefined], // the same
      [rate, '1e-3', '1e-3'],
      [rate, '', undefined],
      [layers, '6', undefined], // as in the run
      [layers, '12', ''], // the default after all
      [layers, '', ''],
      [layers, '3', '3'],
    ];
    for (const [one, text, wanted] of cases) expect(queryValue(one, text, base)).toBe(wanted);
  });

  it('knows what differs from the defaults', () => {
    const one = draft({ layers: '12', learning_rate: '0.0020', causal: 'false' });
    expect(changedSettings(one, all)).toEqual([causal]);
  });

  it('makes a preset with what replaces its settings', () => {
    const one = draft({ preset: 'article', layers: '6', name: 'mine' });
    expect(bodyOf(one, all)).toEqual({
      preset: 'article',
      overrides: { layers: '6' },
      displayName: 'mine',
    });
    expect(commandLine(one, all)).toBe('normlab preset article --layers 6 --name mine');
  });

  it('leaves to the server what is no number', () => {
    expect(specOf(draft({ layers: '6.5', learning_rate: 'fast' }), all)).toEqual({
      layers: '6.5',
      learningRate: 'fast',
    });
  });
});

describe('settings that count only with others', () => {
  const textOf = (given: Record<string, string>) => (one: Setting) =>
    given[one.name] ?? one.default;
  it('follow them', () => {
    expect(counts(unit, all, textOf({}))).toBe(false);
    expect(counts(unit, all, textOf({ data: 'text:alice' }))).toBe(true);
    expect(counts(unit, all, textOf({ data: 'texture' }))).toBe(false);
    expect(counts(floor, all, textOf({ schedule: 'linear' }))).toBe(true);
    expect(counts(floor, all, textOf({ schedule: 'noam' }))).toBe(false);
    expect(counts(layers, all, textOf({}))).toBe(true);
  });
});

describe('the command line', () => {
  it('says the same', () => {
    const one = draft({
      layers: '6',
      causal: 'false',
      name: 'my run',
      priority: 'low',
      held: 'yes',
    });
    expect(commandLine(one, all)).toBe(
      "normlab submit --layers 6 --causal false --name 'my run' --priority low --hold",
    );
    expect(commandLine(draft({ residual_scale: '-1', name: '-x y' }), all)).toBe(
      "normlab submit --residual-scale=-1 '--name=-x y'",
    );
  });

  it('is what a shell makes of it, whatever is in it', () => {
    const hostile = [
      'plain',
      '',
      "it's; rm -rf /",
      '$(touch x) `id` $HOME',
      '"double" \\ back',
      'new\nline\ttab',
      '~ * ? [a] {b,c} !! # & | < >',
      "''",
      'é 🧪 <b>',
    ];
    for (const text of hostile) {
      const seen = execFileSync('/bin/sh', ['-c', `printf %s ${shellWord(text)}`]).toString();
      expect(seen).toBe(text);
    }
  });
});

describe('a refused field', () => {
  it('is a setting, or something else', () => {
    expect(settingOfField('spec.d_model')).toBe('d_model');
    expect(settingOfField('overrides.layers')).toBe('layers');
    expect(settingOfField('runs[2].spec.heads')).toBe('heads');
    expect(settingOfField('display_name')).toBe('');
    expect(settingOfField('resources')).toBe('');
  });
});
