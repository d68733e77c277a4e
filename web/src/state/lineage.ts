// Which points of a run's attempts are no part of its default curve, which follows the latest
// attempt back through the checkpoints that each attempt went on from.
import type { AttemptJson } from '../gen/normlab/v1/run_pb';

/** What an attempt wrote from step `from` on, and was left behind. */
export interface AbandonedPart {
  attempt: number;
  from: number;
}

export function abandonedParts(attempts: readonly AttemptJson[]): AbandonedPart[] {
  const byNumber = new Map(attempts.map((attempt) => [attempt.number ?? 0, attempt]));
  /** Up to which step the curve has the points of an attempt. */
  const usedTo = new Map<number, number>();
  let here = byNumber.get(Math.max(...byNumber.keys()));
  if (here) usedTo.set(here.number ?? 0, Number.POSITIVE_INFINITY);
  while (here && originOf(here) > 0 && !usedTo.has(originOf(here))) {
    usedTo.set(originOf(here), Number(here.resumedFromStep ?? 0));
    here = byNumber.get(originOf(here));
  }
  return attempts.flatMap((attempt) => {
    const number = attempt.number ?? 0;
    const start = Number(attempt.resumedFromStep ?? 0);
    const used = Math.max(start, usedTo.get(number) ?? start);
    return Number(attempt.lastStep ?? 0) > used ? [{ attempt: number, from: used + 1 }] : [];
  });
}

function originOf(attempt: AttemptJson): number {
  return attempt.resumedFromAttempt ?? 0;
}
