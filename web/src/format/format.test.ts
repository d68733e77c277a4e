import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatLarge,
  formatSetting,
  formatTime,
  formatUtc,
  formatValue,
} from './format';

describe('formatValue', () => {
  it.each([
    [0.00165, '0.00165'],
    [4.1512, '4.15'],
    [1.004, '1.00'],
    [0, '0'],
    [1234.5, '1235'],
    [123456, '1.23e5'],
    [0.0000123, '1.23e-5'],
    [-0.0000123, '−1.23e-5'],
    [-4.1512, '−4.15'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, '∞'],
    [Number.NEGATIVE_INFINITY, '−∞'],
    [undefined, ''],
  ])('%s is %s', (value, text) => expect(formatValue(value)).toBe(text));
});

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [1000, '0.977 KiB'],
    [8 * 2 ** 30, '8.00 GiB'],
    [193319040, '184 MiB'],
    [139.8 * 2 ** 30, '140 GiB'],
  ])('%s is %s', (value, text) => expect(formatBytes(value)).toBe(text));
});

describe('formatSetting', () => {
  it.each([
    [0.002, '2e-3'],
    [0.0025, '2.5e-3'],
    [0.05, '0.05'],
    [12, '12'],
    [0, '0'],
    ['post', 'post'],
    [true, 'true'],
    [undefined, ''],
  ])('%s is %s', (value, text) => expect(formatSetting(value)).toBe(text));
});

describe('counts', () => {
  it('groups thousands', () => {
    expect([0, 999, 1000, 610176, 1e6].map(formatCount)).toEqual([
      '0',
      '999',
      '1,000',
      '610,176',
      '1,000,000',
    ]);
  });
  it('shortens large numbers', () => {
    expect([12, 2.96e9, 999_999, 1500].map(formatLarge)).toEqual([
      '12 ',
      '2.96 G',
      '1.00 M',
      '1.50 k',
    ]);
  });
});

describe('formatDuration', () => {
  it.each([
    [-1, '0 s'],
    [0.26, '0.3 s'],
    [4, '4 s'],
    [59.4, '59 s'],
    [60, '1 min'],
    [252, '4 min 12 s'],
    [3600, '1 h'],
    [11_100, '3 h 5 min'],
    [187_200, '2 d 4 h'],
  ])('%s s is %s', (seconds, text) => expect(formatDuration(seconds)).toBe(text));
});

describe('times', () => {
  it('name the day only when it is another one', () => {
    const now = new Date(2026, 10, 29, 18, 0);
    expect(formatTime(new Date(2026, 10, 29, 14, 2), now)).toBe('14:02');
    expect(formatTime(new Date(2026, 10, 28, 14, 2), now)).toBe('28 Nov 14:02');
  });
  it('have UTC at hand', () => {
    expect(formatUtc(new Date(Date.UTC(2026, 10, 29, 14, 2, 5)))).toBe('2026-11-29 14:02:05 UTC');
  });
});
