// What is written at the ticks of an axis.
import { formatCount, formatDuration, formatLarge, formatValue } from '../format/format';
import type { XMode } from '../series/x_axis';

/** x is in steps, tokens or milliseconds. */
export function xTick(x: number, mode: XMode): string {
  if (mode === 'time') return formatDuration(x / 1000);
  if (mode === 'tokens' && x >= 10_000) return formatLarge(x).replace(' ', '');
  return formatCount(x);
}

/** Decades as 0.01, 1, 100; far ones as 1e-6. */
export function yTick(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e4)) {
    return String(Number(value.toPrecision(3))).replace('-', '−');
  }
  if (size >= 1e4 && size < 1e15) {
    // 150k, and not 150.00 k
    const text = formatLarge(size)
      .replace(/(\.\d*?)0+(?= )/, '$1')
      .replace(/\.?(?= )/, '');
    return `${value < 0 ? '−' : ''}${text.replace(' ', '')}`;
  }
  return formatValue(value).replace(/\.?0*e/, 'e');
}

/** What is written below an axis. */
export const xUnits: Record<XMode, string> = {
  step: 'step',
  tokens: 'tokens',
  time: 'training time',
};
