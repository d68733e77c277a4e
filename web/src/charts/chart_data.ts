// From curves to what uPlot draws: one row of steps and, for each curve, a value per step.
//
//   a number   a point
//   undefined  the curve has no point at this step: its line goes straight on to the next one
//   null       its point here has no place on a log axis: the line breaks
//
// Points that are not finite break the line and are marks besides, at the edges of the plot.
import type { Series } from '../state/curve';

export interface NonFinitePoint {
  step: number;
  value: number;
}

export interface ChartData {
  steps: number[];
  values: (number | null | undefined)[][];
  marks: NonFinitePoint[][];
}

/** `others` are not drawn, but the cursor stops at their steps as well. */
export function chartData(
  curves: readonly (Series | undefined)[],
  others: readonly (Series | undefined)[] = [],
): ChartData {
  const steps = unionOfSteps([...curves, ...others]);
  return {
    steps,
    values: curves.map((curve) => spread(curve, steps)),
    marks: curves.map(nonFinitePoints),
  };
}

function nonFinitePoints(curve: Series | undefined): NonFinitePoint[] {
  if (!curve || curve.nonFinite === 0) return [];
  return curve.values.flatMap((value, index) =>
    Number.isFinite(value) ? [] : [{ step: curve.steps[index] as number, value }],
  );
}

function unionOfSteps(curves: readonly (Series | undefined)[]): number[] {
  let longest: readonly number[] = [];
  for (const curve of curves)
    if (curve && curve.steps.length > longest.length) longest = curve.steps;
  // Runs of one experiment have the same steps, each so far as it has come: the usual case.
  const nested = curves.every(
    (curve) => !curve || curve.steps.every((step, index) => step === longest[index]),
  );
  if (nested) return [...longest];
  const all = new Set<number>();
  for (const curve of curves) for (const step of curve?.steps ?? []) all.add(step);
  return [...all].sort((a, b) => a - b);
}

function spread(
  curve: Series | undefined,
  steps: readonly number[],
): (number | null | undefined)[] {
  if (!curve) return new Array(steps.length);
  const row: (number | null | undefined)[] = new Array(steps.length);
  let at = 0;
  curve.steps.forEach((step, index) => {
    while ((steps[at] as number) < step) at++;
    const value = curve.values[index] as number;
    row[at] = Number.isFinite(value) && value > 0 ? value : null;
  });
  return row;
}
