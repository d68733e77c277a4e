import { describe, expect, it } from 'vitest';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { bytesOf, bytesText } from './byte_size';
import { dependenciesOf, parseDependencies } from './dependencies';
import {
  type OwnField,
  ownBody,
  ownDraft,
  ownFields,
  ownFlags,
  ownNameOf,
  ownOf,
  ownQueryValue,
} from './own_fields';
import { bodyOf, commandLine, draftOf, noBase } from './submit_form';

const fieldOf = (name: string): OwnField => {
  const found = ownFields.find((one) => one.name === name);
  if (!found) throw new Error(`no field ${name}`);
  return found;
};
const lineOf = (query: Record<string, string>) => commandLine(draftOf(query, noBase, []), []);
const all = {
  name: 'mine',
  only: 'layers=1,2;seed=1',
  experiment: '01E',
  device: 'gpu',
  priority: 'low',
  after: '01A,01B:any',
  gpus: '2',
  gpu_memory: '1.5 GiB',
  exclusive: 'yes',
  held: 'yes',
};

describe('what is said beside settings', () => {
  it('is in the request and on the command line, every field of it', () => {
    expect(Object.keys(all)).toEqual(ownFields.map(({ name }) => name));
    expect(bodyOf(draftOf(all, noBase, []), [])).toEqual({
      spec: {},
      displayName: 'mine',
      experiment: '01E',
      device: 'gpu',
      priority: 'low',
      after: [
        { run: '01A', condition: 'ok' },
        { run: '01B', condition: 'any' },
      ],
      resources: { gpus: '2', gpuMemoryBytes: '1610612736', exclusive: true },
      held: true,
    });
    expect(lineOf(all)).toBe(
      'normlab submit --name mine --experiment 01E --device gpu --priority low --after 01A ' +
        '--after 01B:any --gpus 2 --gpu-memory 1.5GiB --exclusive --hold',
    );
  });

  it('joins no experiment with a preset, which makes one', () => {
    const query = { preset: 'depths', experiment: '01E', after: '01A', only: 'layers=2;seed=1' };
    const presets = [
      {
        name: 'depths',
        runs: [
          { displayName: 'one', spec: { layers: '1', seed: '1' } },
          { displayName: 'two', spec: { layers: '2', seed: '1' } },
        ],
      },
    ];
    expect(bodyOf(draftOf(query, noBase, []), [], presets)).toEqual({
      preset: 'depths',
      overrides: {},
      after: [{ run: '01A', condition: 'ok' }],
      runs: [{ displayName: 'two' }],
    });
    expect(lineOf(query)).toBe('normlab preset depths --only layers=2 --only seed=1 --after 01A');
  });

  it('is nothing where it says what goes without saying', () => {
    expect(
      ownBody(ownDraft({ device: 'auto', priority: 'normal', held: 'no' }, {}, false)),
    ).toEqual({});
    expect(ownFlags({})).toEqual([]);
  });
});

describe('a run like another one', () => {
  const run: RunJson = {
    displayName: 'first',
    user: 'ada',
    experiment: '01E',
    device: 'gpu:1',
    priority: 'high',
    held: true,
    after: [{ run: '01A' }, { run: '01B', condition: 'any' }],
    resources: { gpus: 2, gpuMemoryBytes: '8589934592', exclusive: true },
  };

  it('begins with all that it was given, but its name and that it was held', () => {
    expect(ownOf(run, 'ada', 'admin')).toEqual({
      experiment: '01E',
      device: 'gpu:1',
      priority: 'high',
      after: '01A,01B:any',
      gpus: '2',
      gpu_memory: '8GiB',
      exclusive: 'yes',
    });
    expect(ownOf({ device: 'auto', priority: 'normal', resources: {} }, 'ada', 'member')).toEqual(
      {},
    );
    expect(ownOf(undefined, 'ada', 'member')).toEqual({});
  });

  it('begins with nothing that only others may say', () => {
    expect(ownOf(run, 'bob', 'member')).not.toHaveProperty('experiment');
    expect(ownOf(run, 'bob', 'admin')).toHaveProperty('experiment');
    expect(ownOf(run, 'ada', 'member')).not.toHaveProperty('priority');
  });

  it('has in the address what differs, and that something is not taken over', () => {
    const base = { device: 'gpu:1', after: '01A' };
    const device = fieldOf('device');
    expect(ownQueryValue(device, 'gpu:1', base)).toBeUndefined();
    expect(ownQueryValue(device, 'auto', base)).toBe('');
    expect(ownQueryValue(device, 'cpu', base)).toBe('cpu');
    expect(ownQueryValue(device, 'auto', {})).toBeUndefined();
    expect(ownQueryValue(fieldOf('after'), '', base)).toBe('');
    expect(ownDraft({ device: '', after: '01C' }, base, false)).toEqual({ after: '01C' });
    expect(ownDraft({}, base, false)).toEqual(base);
  });
});

describe('a refused field', () => {
  it('is one of them, or none', () => {
    for (const { name, field } of ownFields) expect(ownNameOf(field)).toBe(name);
    expect(ownNameOf('after[1].run')).toBe('after');
    expect(ownNameOf('experiment.runs[0].after[0].condition')).toBe('after');
    expect(ownNameOf('experiment.display_name')).toBe('name');
    expect(ownNameOf('resources')).toBe('gpus');
    expect(ownNameOf('spec.device')).toBe('');
    expect(ownNameOf('deviceful')).toBe('');
  });
});

describe('dependencies as text', () => {
  it('are what was read, whatever stands between them', () => {
    expect(parseDependencies('')).toEqual([]);
    expect(parseDependencies(' 01A , ,01B:any,01C:ok')).toEqual([
      { run: '01A', condition: 'ok' },
      { run: '01B', condition: 'any' },
      { run: '01C', condition: 'ok' },
    ]);
    expect(
      dependenciesOf([
        { run: '01A', condition: '' },
        { run: '01B', condition: 'any' },
      ]),
    ).toBe('01A,01B:any');
  });
});

describe('sizes', () => {
  it('are read as the command line reads them, and written exactly', () => {
    expect(bytesOf('500MiB')).toBe('524288000');
    expect(bytesOf('4096')).toBe('4096');
    expect(bytesOf('much')).toBe('much');
    expect(bytesText(0)).toBe('');
    expect(bytesText(8 * 2 ** 30)).toBe('8GiB');
    expect(bytesText(1.5 * 2 ** 30)).toBe('1536MiB');
    expect(bytesText(1_000_001)).toBe('1000001');
    for (const text of ['3TiB', '7MiB', '12345'])
      expect(bytesText(Number(bytesOf(text)))).toBe(text);
  });
});
