// Curves made of others: the difference of two runs, and the median of several with its band.
import { type Points, unionOfSteps, valueAt } from './points';

/**
 * a - b at every step of either that both have reached, on straight lines between points where only
 * one of them has a point. What is not finite in one of them is not finite in the difference.
 */
export function difference(a: Points, b: Points): Points {
  const steps: number[] = [];
  const values: number[] = [];
  for (const step of unionOfSteps([a, b])) {
    const [mine, theirs] = [valueAt(a, step), valueAt(b, step)];
    if (mine === undefined || theirs === undefined) continue;
    steps.push(step);
    values.push(mine - theirs);
  }
  return { steps, values };
}

export interface Band {
  steps: number[];
  median: number[];
  low: number[];
  high: number[];
  /** Curves that the median is of, at each step. */
  count: number[];
}

/**
 * Median of the curves at every step of any of them, with the smallest and largest as its band;
 * from five curves on the quartiles. A NaN counts as larger than everything: a run that diverged is
 * the worst and not the one that does not count. Steps that fewer than half have reached are left
 * out, so that the median does not jump to the fastest run's value while the others train.
 */
export function medianBand(curves: readonly Points[]): Band {
  const band: Band = { steps: [], median: [], low: [], high: [], count: [] };
  for (const step of unionOfSteps(curves)) {
    const here = curves.flatMap((curve) => valueAt(curve, step) ?? []);
    if (here.length === 0 || 2 * here.length < curves.length) continue;
    const sorted = here.map((value) => (Number.isNaN(value) ? Infinity : value));
    sorted.sort((a, b) => a - b);
    const tail = sorted.length >= 5 ? 0.25 : 0;
    band.steps.push(step);
    band.median.push(quantile(sorted, 0.5));
    band.low.push(quantile(sorted, tail));
    band.high.push(quantile(sorted, 1 - tail));
    band.count.push(here.length);
  }
  return band;
}

/** Of rising values, on straight lines between them. */
export function quantile(sorted: readonly number[], share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const [a, b] = [sorted[below] as number, sorted[Math.ceil(place)] as number];
  return a === b ? a : a + (b - a) * (place - below);
}
