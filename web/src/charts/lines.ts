// From the curves of runs to what a chart draws of them.

import { type Points, valueAt } from '../series/points';
import { smooth } from '../series/smooth';
import { byStep, type XMode, type XScale } from '../series/x_axis';
import type { Series } from '../state/curve';
import {
  chartData,
  hasPlace,
  offAxisPoints,
  type Plotted,
  plotted,
  type YMode,
} from './chart_data';
import type { LineLook } from './palette';
import type { PlotContent, PlotLine } from './plot_content';

/** How curves are drawn; a view keeps it in its address. */
export interface ChartLook {
  x: XMode;
  y: YMode;
  /** Steps over which the weights of the smoothed line fall by half; 0: not smoothed. */
  halfLife: number;
}

export const plainLook: ChartLook = { x: 'step', y: 'log', halfLife: 0 };

export interface RunCurve {
  run: string;
  name: string;
  look: LineLook;
  points: Points | undefined;
  firstBadStep: number | undefined;
  /** What attempts left behind. */
  left: readonly (Series | undefined)[];
  /** Steps at which the loss jumped. */
  spikes: readonly number[];
  scale: XScale;
}

/** The area between two curves, behind the line of a group of runs. */
export interface CurveBand {
  low: RunCurve;
  high: RunCurve;
}

/**
 * `others`: curves of the same runs that are not drawn here, at whose points the cursor stops as
 * well. What is drawn first lies behind: the edges of bands, what was left behind, raw lines; the
 * lines of runs come last, in their order.
 */
export function curveContent(
  curves: readonly RunCurve[],
  others: readonly Plotted[],
  look: ChartLook,
  range: [number, number],
  bands: readonly CurveBand[] = [],
): PlotContent {
  const drawn: { line: PlotLine; points: Plotted | undefined }[] = [];
  const add = (curve: RunCurve, kind: PlotLine['kind'], points: Points | undefined) => {
    drawn.push({
      line: plainLine(curve, kind),
      points: points && plotted(points, look.y, curve.scale),
    });
  };
  for (const { high, low } of bands) for (const edge of [high, low]) add(edge, 'edge', edge.points);
  for (const curve of curves) for (const left of curve.left) add(curve, 'left', left);
  const isSmooth = look.halfLife > 0;
  for (const curve of isSmooth ? curves : []) add(curve, 'raw', curve.points);
  for (const curve of curves) {
    const { points, scale } = curve;
    const values =
      points && isSmooth ? smooth(points.steps, points.values, look.halfLife) : undefined;
    drawn.push({
      line: mainLine(curve, look),
      points: points && plotted(points, look.y, scale, values),
    });
  }
  const data = chartData(
    drawn.map(({ points }) => points),
    others,
  );
  return {
    xs: data.xs,
    lines: drawn.map(({ line }, index) => ({ ...line, values: data.values[index] ?? [] })),
    bands: bands.map(({ high }, index) => ({
      high: 2 * index,
      low: 2 * index + 1,
      colour: high.look.colour,
    })),
    range,
    x: look.x,
    y: look.y,
  };
}

function mainLine(curve: RunCurve, look: ChartLook): PlotLine {
  const { points, scale } = curve;
  const spikes = curve.spikes.flatMap((step) => {
    const value = points && valueAt(points, step);
    return value !== undefined && hasPlace(value, look.y) ? [{ x: scale.of(step), value }] : [];
  });
  return {
    ...plainLine(curve, 'curve'),
    marks: points ? offAxisPoints(points, look.y, scale) : [],
    spikes,
    badX: curve.firstBadStep === undefined ? undefined : scale.of(curve.firstBadStep),
  };
}

function plainLine({ run, name, look }: RunCurve, kind: PlotLine['kind']): PlotLine {
  return { key: run, name, look, kind, values: [], marks: [], spikes: [], badX: undefined };
}

/** A line that belongs to no single run: a difference, a median. */
export function derivedCurve(
  key: string,
  name: string,
  look: LineLook,
  points: Points,
  scale: XScale = byStep,
): RunCurve {
  return { run: key, name, look, points, firstBadStep: undefined, left: [], spikes: [], scale };
}
