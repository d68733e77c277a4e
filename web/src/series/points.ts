// Points of a curve as parallel arrays, steps rising; values may be NaN or infinite.

export interface Points {
  readonly steps: readonly number[];
  readonly values: readonly number[];
}

export const noPoints: Points = { steps: [], values: [] };

/** Index of the first step that is at least `step`. */
export function firstAtOrAfter(steps: readonly number[], step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] as number) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The points with from <= step <= to. */
export function within({ steps, values }: Points, from: number, to: number): Points {
  const begin = firstAtOrAfter(steps, from);
  const end = firstAtOrAfter(steps, to + 1);
  return { steps: steps.slice(begin, end), values: values.slice(begin, end) };
}

/**
 * The value at a step: of the point there, or on the line between its finite neighbours; undefined
 * outside the curve and where the line is broken.
 */
export function valueAt({ steps, values }: Points, step: number): number | undefined {
  const at = firstAtOrAfter(steps, step);
  if (at === steps.length) return undefined;
  const value = values[at] as number;
  if (steps[at] === step) return value;
  if (at === 0) return undefined;
  const [x0, x1] = [steps[at - 1] as number, steps[at] as number];
  const y0 = values[at - 1] as number;
  if (!Number.isFinite(y0) || !Number.isFinite(value)) return undefined;
  return y0 + ((value - y0) * (step - x0)) / (x1 - x0);
}

/** All steps of some curves, rising. */
export function unionOfSteps(curves: readonly Points[]): number[] {
  let longest: readonly number[] = [];
  for (const { steps } of curves) if (steps.length > longest.length) longest = steps;
  // Runs of one experiment have the same steps, each so far as it has come: the usual case.
  const nested = curves.every(({ steps }) => steps.every((step, index) => step === longest[index]));
  if (nested) return [...longest];
  const all = new Set<number>();
  for (const { steps } of curves) for (const step of steps) all.add(step);
  return [...all].sort((a, b) => a - b);
}
