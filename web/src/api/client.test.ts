import { afterEach, describe, expect, it, vi } from 'vitest';
import { Client, inAddresses } from './client';

describe('inAddresses', () => {
  it('puts names into as few lists as an address has room for', () => {
    expect(inAddresses(['loss', 'block/3/stream_rms'])).toEqual(['loss,block/3/stream_rms']);
    expect(inAddresses([])).toEqual([]);
    const names = Array.from({ length: 1000 }, (_, index) => `block/${index + 1}/gradient_norm`);
    const lists = inAddresses(names);
    expect(lists.join().split(',')).toEqual(names);
    expect(lists.length).toBe(4);
    expect(Math.max(...lists.map((list) => list.length))).toBeLessThan(6000);
  });

  it('escapes what has a meaning in an address', () => {
    expect(inAddresses(['tensor/a&b=c d,e'])).toEqual(['tensor/a%26b%3Dc%20d%2Ce']);
  });
});

describe('a call', () => {
  afterEach(() => vi.unstubAllGlobals());
  const client = new Client('token', () => undefined);

  it('says in words that nobody answers', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    await expect(client.getRun('01J')).rejects.toThrow('the server does not answer');
  });

  it('that was given up stays that', async () => {
    const stop = new AbortController();
    stop.abort();
    vi.stubGlobal('fetch', () => Promise.reject(stop.signal.reason));
    const reading = client.readSeries('01J', ['loss'], 10, stop.signal);
    await expect(reading).rejects.toThrow(/abort/i);
  });
});
