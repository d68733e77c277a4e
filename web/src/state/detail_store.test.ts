import { describe, expect, it } from 'vitest';
import type { SeriesAnswer } from '../api/events';
import type { Range } from '../series/zoomed';
import { DetailStore } from './detail_store';

function column(range: Range): Record<string, SeriesAnswer> {
  const steps = [range.from, range.to];
  return { loss: { steps, values: steps, totalPoints: 2, nonFinitePoints: 0 } };
}

class Server {
  asked: string[] = [];
  private waiting: (() => void)[] = [];

  read = (run: string, range: Range, signal: AbortSignal) => {
    this.asked.push(`${run} ${range.from}..${range.to}`);
    return new Promise<Record<string, SeriesAnswer>>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
      this.waiting.push(() => resolve(column(range)));
    });
  };

  async answer(): Promise<void> {
    for (const resolve of this.waiting.splice(0)) resolve();
    await new Promise((resolve) => setTimeout(resolve));
  }
}

describe('DetailStore', () => {
  it('reads a range once, and nothing while nothing is zoomed', async () => {
    const server = new Server();
    const store = new DetailStore(server.read);
    store.show(new Map());
    expect(server.asked).toEqual([]);
    store.show(new Map([['a', { from: 3, to: 9 }]]));
    store.show(
      new Map([
        ['a', { from: 3, to: 9 }],
        ['b', { from: 3, to: 9 }],
      ]),
    );
    expect(server.asked).toEqual(['a 3..9', 'b 3..9']);
    await server.answer();
    expect(store.detail('a')?.series.get('loss')?.steps).toEqual([3, 9]);
    expect(store.version.value).toBe(2);
  });

  it('has no use for the answer to a range of before', async () => {
    const server = new Server();
    const store = new DetailStore(server.read);
    store.show(new Map([['a', { from: 3, to: 9 }]]));
    store.show(new Map([['a', { from: 4, to: 5 }]]));
    await server.answer();
    expect(store.detail('a')?.series.get('loss')?.steps).toEqual([4, 5]);
    expect(store.version.value).toBe(1);
  });

  it('reads again when a run goes another way', async () => {
    const server = new Server();
    const store = new DetailStore(server.read);
    store.show(new Map([['a', { from: 3, to: 9 }]]));
    await server.answer();
    store.forget('a');
    store.forget('unknown');
    expect(store.detail('a')).toBeUndefined();
    expect(server.asked).toEqual(['a 3..9', 'a 3..9']);
  });
});
