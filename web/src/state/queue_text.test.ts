/// <reference types="node" />
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { asksText, memoryOf, movesOf, reasonText, standing, startText } from './queue_text';

const times = [', any moment', ', about 12 s', ', about 3 min', ', about 5 h', ', about 2 days'];
/** Words of each cause, and what says when it will be over, where that can be told. */
const words: Record<string, [string, readonly string[]]> = {
  kHeld: ['held', []],
  kRun: ['waits for run a, b to end', []],
  kTime: ['tried again', [' in 8 s']],
  kLimit: ['ada already runs 2 of at most 2', times],
  kNoDevice: ['no device: no GPU takes runs (gpu:0: fan, about to fail)', []],
  kDevice: ['waits for run a, b on cpu:0', times],
  kTurn: ['waits its turn behind 3 runs of higher priority', times],
  kNext: ['starts next', ['']],
};

const entry = (run: string, user = 'ada', priority = 'normal') => ({ run, user, priority });

describe('a run that waits', () => {
  it('says why in the words of the server, whatever the cause', () => {
    // Every cause that the scheduler has, so that one that is added is looked at here as well.
    const header = readFileSync(new URL('../../../server/scheduler/forecast.h', import.meta.url));
    const body = /enum class Cause \{([^}]*)\}/.exec(header.toString())?.[1] ?? '';
    const causes = [...body.matchAll(/^ *(k\w+),/gm)].map(([, name]) => name);
    expect(Object.keys(words)).toEqual(causes);
    const estimatedStartTime = '2026-11-30T12:04:12Z';
    for (const [text, when] of Object.values(words)) {
      expect(reasonText({ waitReason: text })).toBe(text);
      for (const ending of when) {
        expect(reasonText({ waitReason: text + ending, estimatedStartTime })).toBe(text);
      }
    }
    expect(reasonText({})).toBe('');
  });

  it('keeps what looks like a time and is a name', () => {
    const named = 'waits for run warmup, about 4 min';
    expect(reasonText({ waitReason: named })).toBe(named);
    expect(
      reasonText({ waitReason: `${named} on cpu:0, about 2 h`, estimatedStartTime: 'x' }),
    ).toBe(`${named} on cpu:0`);
  });

  it('says when by the clock of the page', () => {
    const now = Date.parse('2026-11-30T12:00:00Z');
    expect(startText({ estimatedStartTime: '2026-11-30T12:04:12Z' }, now)).toBe('in 4 min 12 s');
    expect(startText({ estimatedStartTime: '2026-11-30T11:59:00Z' }, now)).toBe('now');
    expect(startText({}, now)).toBe('');
  });

  it('says what it asks of a device', () => {
    const nothing = { gpus: 0, gpuMemoryBytes: '0', exclusive: false };
    expect(asksText({ device: 'auto', threads: '1', resources: nothing })).toBe('auto');
    expect(asksText({ device: 'cpu', threads: '4' })).toBe('cpu · 4 threads');
    const much = { gpus: 2, gpuMemoryBytes: String(8 * 2 ** 30), exclusive: true };
    expect(asksText({ device: 'gpu', threads: '1', resources: much })).toBe(
      'gpu · 2 GPUs, 8.00 GiB, alone',
    );
  });

  it('moves among the runs of its user and class only', () => {
    const entries = [
      entry('1'),
      entry('2', 'bob'),
      entry('3'),
      entry('4', 'ada', 'low'),
      entry('5'),
    ];
    const moves = (run: string) =>
      movesOf(entries.find((one) => one.run === run) ?? {}, entries).map(
        ({ name, place }) => `${name} ${JSON.stringify(place)}`,
      );
    expect(moves('3')).toEqual([
      'up {"before":"1"}',
      'down {"behind":"5"}',
      'first {"first":true}',
      'last {"last":true}',
    ]);
    expect(moves('1')).toEqual(['down {"behind":"3"}', 'last {"last":true}']);
    expect(moves('5')).toEqual(['up {"before":"3"}', 'first {"first":true}']);
    expect(moves('2')).toEqual([]);
    expect(moves('4')).toEqual([]);
  });
});

describe('users and devices', () => {
  it('stand in the order of what they have used', () => {
    const users = [
      { user: 'ada', decayedDeviceSeconds: 100 },
      { user: 'bob', decayedDeviceSeconds: 3 },
      { user: 'eve' },
    ];
    expect(standing(users).map(({ user }) => user)).toEqual(['eve', 'bob', 'ada']);
  });

  it('tell memory in use by runs from memory in use by others', () => {
    const GiB = 2 ** 30;
    const gpu = {
      memoryBytes: String(80 * GiB),
      memoryUsedBytes: String(12 * GiB),
      foreignMemoryBytes: String(2 * GiB),
    };
    expect(memoryOf(gpu)).toEqual({
      total: 80 * GiB,
      own: 10 * GiB,
      foreign: 2 * GiB,
      text: '12.0 GiB of 80.0 GiB, 2.00 GiB of it by others',
    });
    expect(memoryOf({ memoryBytes: '0' })).toBeUndefined();
  });
});
