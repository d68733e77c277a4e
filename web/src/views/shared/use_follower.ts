import { useEffect, useMemo } from 'preact/hooks';
import type { CurveSet } from '../../state/curve_set';
import type { Live } from '../../state/live';

/** Series of some runs, up to date for as long as the component is shown. */
export function useFollower(
  live: Live,
  names: readonly string[],
  maxPoints: number,
  runs: readonly string[],
): CurveSet {
  const follower = useMemo(() => live.follow(names, maxPoints), [live, names.join(), maxPoints]);
  useEffect(() => follower.keep(runs), [follower, runs.join()]);
  useEffect(() => () => follower.stop(), [follower]);
  return follower.curves;
}
