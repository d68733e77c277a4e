// Zooming without a mouse: around the cursor, which stays where it is on the screen.
import type { Range } from '../series/zoomed';

/**
 * The range that is `factor` times as wide, in whole steps, tokens or milliseconds and within the
 * `whole` axis; undefined: all of it. A range of one or two places gets no narrower.
 */
export function zoomAround(
  [from, to]: readonly [number, number],
  cursor: number,
  factor: number,
  whole: readonly [number, number],
): Range | undefined {
  const width = factor * (to - from);
  if (width >= whole[1] - whole[0]) return undefined;
  if (width < 2) return { from: Math.floor(from), to: Math.ceil(to) };
  const share = Math.min(1, Math.max(0, (cursor - from) / (to - from)));
  const wanted = from + share * (to - from) - share * width;
  const begin = Math.min(whole[1] - width, Math.max(whole[0], wanted));
  return { from: Math.round(begin), to: Math.round(begin + width) };
}
