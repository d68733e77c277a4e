// Curves of many blocks as one picture: a row for each block, a column for each step.
import { formatCount } from '../format/format';
import { firstAtOrAfter, type Points, unionOfSteps } from '../series/points';
import type { Range } from '../series/zoomed';

export interface BlockGrid {
  rows: number;
  /** The first step of each column, rising. */
  steps: number[];
  /** Row by row; undefined: no point. */
  values: (number | undefined)[];
  /** Of how many steps a column has the largest value. */
  each: number;
}

/** A curve of one block; thinned: points between those held were left out. */
export interface BlockCurve extends Points {
  thinned?: boolean;
}

/**
 * At most `mostColumns` columns: where there are more steps, a column has the largest value of its
 * steps, and NaN before all. A thinned curve has its points at other steps than its neighbours, so
 * where it has none its last one stands for what was left out.
 */
export function blockGrid(
  curves: readonly (BlockCurve | undefined)[],
  range: Range,
  mostColumns: number,
): BlockGrid {
  const all = unionOfSteps(curves.flatMap((curve) => curve ?? []));
  const steps = all.slice(
    // The column before the range reaches into it.
    Math.max(0, firstAtOrAfter(all, range.from + 1) - 1),
    firstAtOrAfter(all, range.to + 1),
  );
  const each = Math.max(1, Math.ceil(steps.length / mostColumns));
  const starts = steps.filter((_, index) => index % each === 0);
  const values = curves.flatMap((curve) => row(curve, starts, steps.at(-1) ?? 0));
  return { rows: curves.length, steps: starts, values, each };
}

function row(curve: BlockCurve | undefined, starts: readonly number[], last: number) {
  const final = curve?.steps.at(-1) ?? 0;
  return starts.map((start, column) => {
    if (!curve) return undefined;
    const end = starts[column + 1] ?? last + 1;
    const before = firstAtOrAfter(curve.steps, start) - 1;
    let largest = curve.thinned && start <= final ? curve.values[before] : undefined;
    if (curve.steps[before + 1] !== undefined && (curve.steps[before + 1] as number) < end) {
      largest = undefined;
    }
    for (let at = before + 1; at < curve.steps.length; at++) {
      if ((curve.steps[at] as number) >= end) break;
      const value = curve.values[at] as number;
      if (Number.isNaN(value)) return value;
      if (largest === undefined || value > largest) largest = value;
    }
    return largest;
  });
}

export interface ColourRange {
  low: number;
  high: number;
  /** Finite values with no place on a log scale. */
  offScale: number;
  nonFinite: number;
}

export function colourRange(
  values: readonly (number | undefined)[],
  scale: 'log' | 'linear',
): ColourRange {
  const found: ColourRange = { low: Infinity, high: -Infinity, offScale: 0, nonFinite: 0 };
  for (const value of values) {
    if (value === undefined) continue;
    if (!Number.isFinite(value)) found.nonFinite++;
    else if (scale === 'log' && value <= 0) found.offScale++;
    else {
      found.low = Math.min(found.low, value);
      found.high = Math.max(found.high, value);
    }
  }
  if (found.high < found.low) return { ...found, low: 1, high: 10 };
  // One colour for one value: in the middle of a range around it.
  if (found.high === found.low) {
    const around = Math.abs(found.low) || 1;
    return scale === 'log'
      ? { ...found, low: found.low / 2, high: found.high * 2 }
      : { ...found, low: found.low - around / 2, high: found.high + around / 2 };
  }
  return found;
}

/** Where in the range a value is, from 0 to 1; undefined: it has no place on the scale. */
export function colourShare(
  value: number,
  { low, high }: ColourRange,
  scale: 'log' | 'linear',
): number | undefined {
  if (!Number.isFinite(value) || (scale === 'log' && value <= 0)) return undefined;
  const place = scale === 'log' ? Math.log : (one: number) => one;
  const share = (place(value) - place(low)) / (place(high) - place(low));
  return Math.min(1, Math.max(0, share));
}

/** The column nearest to a step; -1: there is none. */
export function columnAt({ steps }: BlockGrid, step: number): number {
  const after = firstAtOrAfter(steps, step);
  if (after === 0 || after === steps.length) return Math.min(after, steps.length - 1);
  const isNearer = (steps[after] as number) - step <= step - (steps[after - 1] as number);
  return isNearer ? after : after - 1;
}

export interface Profile {
  /** The step that was measured last, at or before the one asked for. */
  step: number;
  /** By block; undefined: no point at that step. */
  values: (number | undefined)[];
  /** The step of each value: where curves are thinned, the last one held. */
  steps: (number | undefined)[];
}

/** Value over block at a step; undefined before the first point. */
export function profileAt(
  curves: readonly (BlockCurve | undefined)[],
  step: number,
): Profile | undefined {
  let found = -1;
  for (const curve of curves) {
    const at = curve ? firstAtOrAfter(curve.steps, step + 1) - 1 : -1;
    if (at >= 0) found = Math.max(found, curve?.steps[at] as number);
  }
  if (found < 0) return undefined;
  const places = curves.map((curve) => {
    const at = curve ? firstAtOrAfter(curve.steps, found + 1) - 1 : -1;
    return curve && (curve.steps[at] === found || curve.thinned) ? at : -1;
  });
  return {
    step: found,
    values: curves.map((curve, block) => curve?.values[places[block] as number]),
    steps: curves.map((curve, block) => curve?.steps[places[block] as number]),
  };
}

/** What a picture of profiles does not show, in words. */
export function profileNote(
  profiles: readonly (Profile | undefined)[],
  scale: 'log' | 'linear',
): string {
  const values = profiles.flatMap((one) => one?.values ?? []).filter((one) => one !== undefined);
  const steps = profiles.flatMap((one) => one?.steps ?? []).filter((one) => one !== undefined);
  const of = ` of ${formatCount(values.length)}`;
  const parts = [];
  const nonFinite = values.filter((value) => !Number.isFinite(value)).length;
  if (nonFinite > 0) parts.push(`${formatCount(nonFinite)}${of} not finite`);
  const off = values.filter((value) => Number.isFinite(value) && value <= 0).length;
  if (off > 0 && scale === 'log') parts.push(`${formatCount(off)}${of} at or below zero`);
  const isMixed = profiles.some((one) => one?.steps.some((s) => s !== undefined && s !== one.step));
  if (isMixed) {
    const [first, last] = [Math.min(...steps), Math.max(...steps)].map(formatCount);
    parts.push(`of thinned curves: values of steps ${first} to ${last}; zoom in for one step`);
  }
  return parts.join(' · ');
}
