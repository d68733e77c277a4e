import { describe, expect, it } from 'vitest';
import { noteText, progressShare, progressText } from './run_text';

describe('the text of a run', () => {
  it('counts steps, and believes the curve where that is further', () => {
    const run = { progress: { step: '140', steps: '180' } };
    expect(progressText(run)).toBe('140/180');
    expect(progressText(run, 142)).toBe('142/180');
    expect(progressShare(run, 90)).toBeCloseTo(140 / 180);
  });

  it('knows the planned steps of a run that has not started', () => {
    expect(progressText({ effectiveSpec: { steps: '1000' } })).toBe('0/1,000');
    expect(progressText({})).toBe('');
    expect(progressShare({})).toBe(0);
  });

  it('says why a run waits, when it is done, how long it took or why it ended', () => {
    expect(noteText({ state: 'STATE_QUEUED', waitReason: 'waits for cpu:0' })).toBe(
      'waits for cpu:0',
    );
    expect(noteText({ state: 'STATE_RUNNING', progress: { remainingSeconds: 3.2 } })).toBe(
      '4 s left',
    );
    const times = { endTime: '2026-11-29T14:04:12Z', attempts: [{}], runSeconds: 252 };
    expect(noteText({ state: 'STATE_SUCCEEDED', endReason: 'all steps done', ...times })).toBe(
      'took 4 min 12 s',
    );
    expect(noteText({ state: 'STATE_FAILED', endReason: 'signal 9', ...times })).toBe('signal 9');
  });

  it('counts only the time of training, not that of a pause', () => {
    const times = { startTime: '2026-11-29T14:00:00Z', endTime: '2026-11-29T20:00:12Z' };
    const run = { ...times, attempts: [{}, {}], runSeconds: 72 };
    expect(noteText({ state: 'STATE_SUCCEEDED', ...run })).toBe('took 1 min 12 s');
  });

  it('names the run that another waits for', () => {
    const id = '01M8MM6194DZ9BH7508HABCDEF';
    const run = { state: 'STATE_QUEUED', waitReason: `waits for ${id} on cpu:0` } as const;
    expect(noteText(run, () => 'Pre-Norm')).toBe('waits for \u2068Pre-Norm\u2069 on cpu:0');
    expect(noteText(run)).toBe('waits for run ABCDEF on cpu:0');
  });
});
