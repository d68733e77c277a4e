// What a curve is drawn over: steps, tokens seen, or milliseconds of training.
import type { RunSpecJson } from '../gen/normlab/v1/run_spec_pb';
import type { Points } from './points';

export const xModes = ['step', 'tokens', 'time'] as const;
export type XMode = (typeof xModes)[number];

/** From steps of one run to places on the axis, and back. Both rise. */
export interface XScale {
  of(step: number): number;
  stepAt(x: number): number;
}

export const byStep: XScale = { of: (step) => step, stepAt: (x) => x };

export function byTokens(tokensPerStep: number): XScale {
  return { of: (step) => step * tokensPerStep, stepAt: (x) => x / tokensPerStep };
}

/** Tokens of one update; 1 where the settings do not say. */
export function tokensPerStep(spec: RunSpecJson | undefined): number {
  const factor = (value: unknown) => Math.max(1, Number(value ?? 1) || 1);
  return factor(spec?.batchSize) * factor(spec?.sequenceLength) * factor(spec?.accumulate);
}

/**
 * Milliseconds of training, from how long steps took. Where steps are missing in a thinned
 * series, those between two points took as long as the second; a point that is slower and one that is
 * faster than both its neighbours was kept for being extreme, and stands only for itself.
 */
export function byTime(took: Points): XScale {
  const { steps, values } = took;
  const ends: number[] = [];
  let total = 0;
  steps.forEach((step, index) => {
    const gap = step - (steps[index - 1] ?? 0);
    const own = finite(values[index]);
    total += own + (gap - 1) * typical(values, index);
    ends.push(total);
  });
  return {
    of: (step) => interpolate(step, steps, ends),
    stepAt: (x) => interpolate(x, ends, steps),
  };
}

function finite(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : 0;
}

// The middle one of a value and its neighbours.
function typical(values: readonly number[], index: number): number {
  const around = [index - 1, index, index + 1].flatMap((at) => values[at] ?? []).map(finite);
  around.sort((a, b) => a - b);
  return around[around.length >> 1] ?? 0;
}

/** From (0, 0) through the points; beyond the last one with the mean slope. */
function interpolate(x: number, xs: readonly number[], ys: readonly number[]): number {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) < x) low = middle + 1;
    else high = middle;
  }
  const lastX = xs.at(-1) ?? 0;
  const lastY = ys.at(-1) ?? 0;
  if (low === xs.length) return lastX > 0 ? (lastY / lastX) * x : 0;
  const [x0, y0] = low > 0 ? [xs[low - 1] as number, ys[low - 1] as number] : [0, 0];
  const [x1, y1] = [xs[low] as number, ys[low] as number];
  return x1 > x0 ? y0 + ((y1 - y0) * (x - x0)) / (x1 - x0) : y1;
}
