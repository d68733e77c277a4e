import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ReadOnce } from './read_once';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('ReadOnce', () => {
  it('reads when it is needed, and once', async () => {
    let reads = 0;
    const once = new ReadOnce<number>(0, async () => ++reads);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reads).toBe(0);
    once.need();
    once.need();
    await vi.advanceTimersByTimeAsync(10_000);
    once.need();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reads).toBe(1);
    expect(once.value.value).toBe(1);
  });

  it('says why it could not, and tries again until it can or is stopped', async () => {
    let works = false;
    let reads = 0;
    const once = new ReadOnce<string>('', async () => {
      reads++;
      if (!works) throw new Error('away');
      return 'there';
    });
    once.need();
    await vi.advanceTimersByTimeAsync(0);
    expect(once.problem.value).toBe('away');
    works = true;
    await vi.advanceTimersByTimeAsync(4_000);
    expect(once.value.value).toBe('there');
    expect(once.problem.value).toBe('');

    const stopped = new ReadOnce<string>('', () => Promise.reject(new Error('away')));
    stopped.need();
    await vi.advanceTimersByTimeAsync(0);
    stopped.stop();
    reads = 0;
    await vi.advanceTimersByTimeAsync(60_000);
    stopped.need();
    expect(stopped.problem.value).toBe('away');
    expect(reads).toBe(0);
  });
});
