import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { SubmitCheck } from './submit_check';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('SubmitCheck', () => {
  it('asks once for quick changes, and keeps the answer to the last', async () => {
    const asked: unknown[] = [];
    const check = new SubmitCheck(async (body) => {
      asked.push(body);
      return [{ displayName: String(body) }];
    });
    for (const text of ['a', 'ab', 'abc']) check.ask(text, false);
    expect(check.isCurrent.value).toBe(false);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toEqual(['abc']);
    expect(check.answer.value?.runs).toEqual([{ displayName: 'abc' }]);
    expect(check.isCurrent.value).toBe(true);
  });

  it('drops an answer that comes too late', async () => {
    const answers: ((runs: RunJson[]) => void)[] = [];
    const check = new SubmitCheck(() => new Promise((resolve) => answers.push(resolve)));
    check.ask('old', false);
    await vi.advanceTimersByTimeAsync(1000);
    check.ask('new', false);
    await vi.advanceTimersByTimeAsync(1000);
    answers[1]?.([{ displayName: 'new' }]);
    await vi.advanceTimersByTimeAsync(0);
    answers[0]?.([{ displayName: 'old' }]);
    await vi.advanceTimersByTimeAsync(0);
    expect(check.answer.value?.runs).toEqual([{ displayName: 'new' }]);
  });

  it('gives what is wrong by field, and does not ask again', async () => {
    let asked = 0;
    const check = new SubmitCheck(async () => {
      asked++;
      throw new ApiError(400, 'INVALID_ARGUMENT', 'spec.heads: must divide', [
        { field: 'spec.heads', description: 'must divide' },
      ]);
    });
    check.ask({}, false);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toBe(1);
    expect(check.answer.value).toEqual({
      runs: [],
      problems: [{ field: 'spec.heads', description: 'must divide' }],
      problem: '',
    });
  });

  it('asks again while the server is away', async () => {
    let works = false;
    const check = new SubmitCheck(async () => {
      if (!works) throw new Error('away');
      return [{}];
    });
    check.ask({}, false);
    await vi.advanceTimersByTimeAsync(1000);
    expect(check.answer.value?.problem).toBe('the server could not be asked (away); trying again');
    expect(check.isCurrent.value).toBe(false);
    works = true;
    await vi.advanceTimersByTimeAsync(5000);
    expect(check.answer.value?.problem).toBe('');
    expect(check.isCurrent.value).toBe(true);
    check.stop();
  });
});
