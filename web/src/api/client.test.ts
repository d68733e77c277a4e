import { describe, expect, it } from 'vitest';
import { inAddresses } from './client';

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
