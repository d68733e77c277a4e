import { effect } from '@preact/signals';
import { describe, expect, it } from 'vitest';
import { groupRuns, RunList } from './run_list';

describe('RunList', () => {
  it('tells who looks for a run when it comes', () => {
    const list = new RunList();
    const seen: (string | undefined)[] = [];
    const stop = effect(() => {
      seen.push(list.get('a')?.displayName);
    });
    list.takeList([{ id: 'a', displayName: 'first' }], list.mark());
    list.takeList([{ id: 'a', displayName: 'second' }], list.mark());
    stop();
    expect(seen).toEqual([undefined, 'first', 'second']);
  });

  it('lists newest first', () => {
    const list = new RunList();
    list.takeList([{ id: '01A' }, { id: '01C' }], 0);
    list.takeEvent({ kind: 'run', run: { id: '01B' } });
    expect(list.ids.value).toEqual(['01C', '01B', '01A']);
  });

  it('lets an event win over a list that was asked for before it', () => {
    const list = new RunList();
    const mark = list.mark();
    list.takeEvent({ kind: 'end', run: { id: '01A', state: 'STATE_SUCCEEDED' } });
    list.takeList([{ id: '01A', state: 'STATE_RUNNING' }], mark);
    expect(list.get('01A')?.state).toBe('STATE_SUCCEEDED');
    list.takeList([{ id: '01A', state: 'STATE_FAILED' }], list.mark());
    expect(list.get('01A')?.state).toBe('STATE_FAILED');
  });

  it('forgets a run, also from a list that was asked for before', () => {
    const list = new RunList();
    list.takeList([{ id: '01A' }, { id: '01B' }], 0);
    const mark = list.mark();
    list.forget('01A');
    list.takeList([{ id: '01A' }, { id: '01B' }], mark);
    expect(list.ids.value).toEqual(['01B']);
    list.takeList([{ id: '01A' }], list.mark());
    expect(list.ids.value).toEqual(['01B', '01A']);
  });

  it('neither doubles nor loses a run when pages are read while runs are added', () => {
    const list = new RunList();
    const mark = list.mark();
    list.takeList([{ id: '01C' }, { id: '01B' }], mark);
    list.takeEvent({ kind: 'run', run: { id: '01D' } });
    list.takeList([{ id: '01B' }, { id: '01A' }], mark);
    expect(list.ids.value).toEqual(['01D', '01C', '01B', '01A']);
  });

  it('drops a deleted run, also from a list that was asked for before', () => {
    const list = new RunList();
    list.takeList([{ id: '01A' }], 0);
    const mark = list.mark();
    expect(list.takeEvent({ kind: 'deleted', run: '01A' })).toBe('01A');
    expect(list.takeEvent({ kind: 'deleted', run: '01X' })).toBeUndefined();
    list.takeList([{ id: '01A' }], mark);
    expect(list.ids.value).toEqual([]);
  });

  it('drops a run that is archived, unless somebody asked for it as one', () => {
    const list = new RunList();
    list.takeList([{ id: '01A' }], 0);
    const mark = list.mark();
    const archived = { kind: 'run', run: { id: '01A', archived: true } } as const;
    expect(list.takeEvent(archived)).toBe('01A');
    list.takeList([{ id: '01A' }], mark);
    expect(list.ids.value).toEqual([]);
    list.takeList([{ id: '01A', archived: true }], mark);
    expect(list.takeEvent(archived)).toBeUndefined();
    expect(list.ids.value).toEqual(['01A']);
    list.takeEvent({ kind: 'run', run: { id: '01B', archived: true } });
    expect(list.ids.value).toEqual(['01A']);
    list.takeEvent({ kind: 'run', run: { id: '01B' } });
    expect(list.ids.value).toEqual(['01B', '01A']);
  });

  it('takes progress and attempts of runs it knows, and ignores others', () => {
    const list = new RunList();
    list.takeList([{ id: '01A', attempts: [{ number: 1 }] }], 0);
    list.takeEvent({ kind: 'progress', run: '01A', progress: { step: '6', steps: '180' } });
    const summary = { finalLoss: 0.5 };
    const progress = { step: '7', steps: '180' };
    list.takeEvent({ kind: 'progress', run: '01A', progress, summary });
    list.takeEvent({ kind: 'attempt', run: '01A', attempt: { number: 2 } });
    list.takeEvent({ kind: 'progress', run: '01X', progress: {} });
    expect(list.get('01A')?.progress?.step).toBe('7');
    expect(list.get('01A')?.summary?.finalLoss).toBe(0.5);
    expect(list.get('01A')?.attempts?.map((a) => a.number)).toEqual([1, 2]);
    expect(list.get('01X')).toBeUndefined();
  });
});

describe('groupRuns', () => {
  it('puts an experiment where its newest run is, its runs in order', () => {
    const experiments: Record<string, string> = { '1': 'e', '2': 'e', '4': 'f' };
    expect(groupRuns(['4', '3', '2', '1'], (id) => experiments[id])).toEqual([
      { experiment: 'f', runs: ['4'] },
      { experiment: undefined, runs: ['3'] },
      { experiment: 'e', runs: ['1', '2'] },
    ]);
  });
});
