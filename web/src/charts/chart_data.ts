// From curves to what uPlot draws: one row of places on the x axis and, for each curve, a value per
// place.
//
//   a number   a point
//   undefined  the curve has no point here: its line goes straight on to the next one
//   null       its point here has no place on the axis: the line breaks
//
// Points without a place break the line and are marks besides, at the edges of the plot.
import { type Points, unionOfSteps } from '../series/points';
import { byStep, type XScale } from '../series/x_axis';

export type YMode = 'log' | 'linear';

/** A point with no place on the y axis: not finite or, on a log axis, zero or negative. */
export interface OffAxisPoint {
  x: number;
  value: number;
}

/** A curve with its places on the x axis, rising. */
export interface Plotted {
  xs: readonly number[];
  values: readonly (number | null)[];
}

export interface ChartData {
  xs: number[];
  values: (number | null | undefined)[][];
}

/** `others` are not drawn, but the cursor stops at their places as well. */
export function chartData(
  curves: readonly (Plotted | undefined)[],
  others: readonly (Plotted | undefined)[] = [],
): ChartData {
  const known = [...curves, ...others].flatMap((curve) => curve ?? []);
  const xs = unionOfSteps(known.map((curve) => ({ steps: curve.xs, values: [] })));
  return { xs, values: curves.map((curve) => spread(curve, xs)) };
}

/** What of a curve an axis has a place for. `values` may stand in for its own, for a smoothed line. */
export function plotted(
  points: Points,
  y: YMode,
  scale: XScale = byStep,
  values: readonly (number | null)[] = points.values,
): Plotted {
  const fits = (value: number | null) => value !== null && hasPlace(value, y);
  const xs = scale === byStep ? points.steps : points.steps.map((step) => scale.of(step));
  return { xs, values: values.map((value) => (fits(value) ? value : null)) };
}

export function hasPlace(value: number, y: YMode): boolean {
  return Number.isFinite(value) && (y === 'linear' || value > 0);
}

export function offAxisPoints(points: Points, y: YMode, scale: XScale = byStep): OffAxisPoint[] {
  return points.values.flatMap((value, index) =>
    hasPlace(value, y) ? [] : [{ x: scale.of(points.steps[index] as number), value }],
  );
}

function spread(curve: Plotted | undefined, xs: readonly number[]): (number | null | undefined)[] {
  const row: (number | null | undefined)[] = new Array(xs.length);
  if (!curve) return row;
  let at = 0;
  curve.xs.forEach((x, index) => {
    while ((xs[at] as number) < x) at++;
    row[at] = curve.values[index] ?? null;
  });
  return row;
}
