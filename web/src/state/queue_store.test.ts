import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DeviceJson } from '../gen/normlab/v1/device_service_pb';
import { QueueStore } from './queue_store';

const settle = () => vi.advanceTimersByTimeAsync(0);

function open(devices: DeviceJson[] = [], isSeen = () => true) {
  const state = { reads: 0, now: 0, most: 0, sizes: [] as number[], fault: undefined as unknown };
  const store = new QueueStore(
    {
      async getQueue(size) {
        state.reads++;
        state.sizes.push(size);
        state.most = Math.max(state.most, ++state.now);
        await new Promise((resolve) => setTimeout(resolve, 100));
        state.now--;
        if (state.fault) throw state.fault;
        return { totalSize: String(state.reads) };
      },
      listDevices: async () => devices,
    },
    isSeen,
  );
  return { store, state };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('QueueStore', () => {
  it('reads once, and then only when something changed', async () => {
    const { store, state } = open();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.reads).toBe(1);
    store.changed();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.reads).toBe(2);
    expect(store.queue.value?.totalSize).toBe('2');
    store.stop();
  });

  it('reads once for many changes, never twice at a time, and not less than the last one', async () => {
    const { store, state } = open();
    await vi.advanceTimersByTimeAsync(1000);
    for (let change = 0; change < 100; change++) {
      store.changed();
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.reads).toBeLessThanOrEqual(5);
    expect(state.most).toBe(1);
    const before = state.reads;
    store.changed();
    await vi.advanceTimersByTimeAsync(450); // while it is read
    store.changed();
    await vi.advanceTimersByTimeAsync(2000);
    expect(state.reads).toBe(before + 2);
    store.stop();
  });

  it('looks at GPUs by the clock, while somebody looks at them', async () => {
    let seen = true;
    const { store, state } = open([{ id: 'gpu:0', kind: 'KIND_GPU' }], () => seen);
    await vi.advanceTimersByTimeAsync(21_000);
    expect(state.reads).toBeGreaterThanOrEqual(4);
    expect(state.reads).toBeLessThanOrEqual(5);
    seen = false;
    const before = state.reads;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.reads).toBe(before);
    seen = true;
    await vi.advanceTimersByTimeAsync(6_000);
    expect(state.reads).toBe(before + 1);
    store.changed();
    await vi.advanceTimersByTimeAsync(600);
    expect(state.reads).toBe(before + 2);
    store.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.reads).toBe(before + 2);
  });

  it('keeps what it has while the server is away, and tries again', async () => {
    const { store, state } = open();
    await vi.advanceTimersByTimeAsync(1000);
    state.fault = new Error('away');
    store.changed();
    await vi.advanceTimersByTimeAsync(1000);
    expect(store.problem.value).toBe('away');
    expect(store.queue.value?.totalSize).toBe('1');
    state.fault = undefined;
    await vi.advanceTimersByTimeAsync(5000);
    expect(store.problem.value).toBe('');
    expect(Number(store.queue.value?.totalSize)).toBeGreaterThan(1);
    store.stop();
  });

  it('reads more when asked for more', async () => {
    const { store, state } = open();
    await vi.advanceTimersByTimeAsync(1000);
    store.showMore();
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.sizes).toEqual([200, 800]);
    await settle();
    store.stop();
  });
});
