// The points that a chart shows, for whoever takes them away or derives others from them.
import { noPoints, type Points, within } from '../series/points';
import type { XMode } from '../series/x_axis';
import type { Range } from '../series/zoomed';
import type { CurveSet } from '../state/curve_set';
import { zoom } from '../state/selection';

export interface ShownPoints {
  points: Points;
  /** Others between them are left out. */
  thinned: boolean;
  /** The same and, of a zoomed chart, what lies beyond it, so that lines come in and go out. */
  drawn: Points;
}

/** Those of a run's curve in a range of steps; undefined: all. */
export function shownPoints(
  curves: CurveSet,
  run: string,
  series: string,
  range: Range | undefined,
): ShownPoints {
  const found = curves.zoomed(run, series, range);
  if (!found) return { points: noPoints, thinned: false, drawn: noPoints };
  const { drawn, inside } = found;
  if (inside) return { points: inside, thinned: inside.total > inside.steps.length, drawn };
  // The server has not told the others yet.
  return { points: range ? within(drawn, range.from, range.to) : drawn, thinned: true, drawn };
}

/** Said of what was derived from thinned curves, which have their points at steps of their own. */
export const thinnedNote = ' · of thinned curves, straight lines between; zoom in for every step';

/** Points as a file. */
export interface PointsFile {
  text: string;
  /** Parts of its name. */
  name: readonly string[];
}

const units: Record<XMode, string> = { step: 'steps', tokens: 'tokens', time: 'ms' };

/** What the name of a file says of its points: which they are, and that some are left out. */
export function partName(x: XMode, thinned: boolean): string[] {
  const range = zoom.value;
  return [
    ...(range ? [units[x], String(range.from), String(range.to)] : []),
    ...(thinned ? ['thinned'] : []),
  ];
}
