// From curves to what uPlot draws: one row of steps and, for each curve, a value per step.
// null is a gap in a curve; undefined only means that another curve has a point at this step.
import type { Series } from '../state/curve';

export interface ChartData {
  steps: number[];
  values: (number | null | undefined)[][];
}

export function chartData(curves: readonly (Series | undefined)[]): ChartData {
  const steps = unionOfSteps(curves);
  return { steps, values: curves.map((curve) => spread(curve, steps)) };
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
