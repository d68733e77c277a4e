// How far what is drawn is behind what the server is known to have.
import { stateLook } from '../format/state';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import type { Curve } from './curve';

/** Steps of a run that are stored and that its curve here lacks; `loading`: they are on their way. */
export function stepsBehind(run: RunJson, curve: Curve | undefined, loading: boolean): number {
  // An ended run is read again if anything was missed; beyond that its curve is as it is.
  if (stateLook(run.state).ended && !loading) return 0;
  const held = Math.max(0, ...[...(curve?.series.values() ?? [])].map((one) => one.lastStep));
  return Math.max(0, Number(run.progress?.step ?? 0) - held);
}
