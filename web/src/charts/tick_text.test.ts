import { describe, expect, it } from 'vitest';
import { xTick, yTick } from './tick_text';

describe('ticks', () => {
  it.each([
    [0, '0'],
    [0.01, '0.01'],
    [-2.5, '−2.5'],
    [1e-6, '1e-6'],
    [5000, '5000'],
    [10_000, '10k'],
    [150_000, '150k'],
    [-12_500, '−12.5k'],
    [1e6, '1M'],
    [1e20, '1e20'],
  ])('of y: %s is %s', (value, text) => expect(yTick(value)).toBe(text));
  it('of x are in steps, tokens or time', () => {
    expect(xTick(1_000_000, 'step')).toBe('1,000,000');
    expect(xTick(500, 'tokens')).toBe('500');
    expect(xTick(138_240, 'tokens')).toBe('138k');
    expect(xTick(90_000, 'time')).toBe('1 min 30 s');
  });
});
