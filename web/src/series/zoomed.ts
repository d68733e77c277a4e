// A curve as a zoomed chart shows it: the page holds a few thousand points of a long run, and the
// server has given all, or more, of those in the range.
import { Series } from '../state/curve';
import { within } from './points';

export interface Range {
  from: number;
  to: number;
}

export interface Zoomed {
  /** What is drawn, also beyond the range, so that lines come in and go out. */
  drawn: Series;
  /** The points in the range, to be counted; undefined while the server has not told them all. */
  inside: Series | undefined;
}

/** Whether the range has points that are not held. */
export function needsDetail(held: Series | undefined, range: Range | undefined): boolean {
  return held !== undefined && range !== undefined && held.total > held.steps.length;
}

/** `detail`: what the server answered for just this range. */
export function zoomed(held: Series, detail: Series | undefined, range: Range | undefined): Zoomed {
  if (!range) return { drawn: held, inside: held };
  if (!needsDetail(held, range))
    return { drawn: held, inside: joined([within(held, range.from, range.to)]) };
  if (!detail) return { drawn: held, inside: undefined };
  // What came by the stream since the detail was read goes on behind it.
  const since = within(held, Math.max(range.from, detail.lastStep + 1), range.to);
  const inside = joined([detail, since], detail);
  // Whole or thinned as it is inside: nobody looks beyond.
  const drawn = joined(
    [within(held, 0, range.from - 1), inside, within(held, range.to + 1, Number.POSITIVE_INFINITY)],
    inside,
  );
  return { drawn, inside };
}

// One after the other; `counted` knows of points of its own that it does not hold.
function joined(
  parts: readonly { steps: readonly number[]; values: readonly number[] }[],
  counted?: Series,
): Series {
  const all = new Series();
  for (const part of parts) {
    part.steps.forEach((step, index) => {
      all.append(step, part.values[index] as number);
    });
  }
  if (counted) {
    all.total += counted.total - counted.steps.length;
    const held = counted.values.filter((value) => !Number.isFinite(value)).length;
    all.nonFinite += counted.nonFinite - held;
    all.firstNonFiniteStep = counted.firstNonFiniteStep ?? all.firstNonFiniteStep;
  }
  return all;
}
