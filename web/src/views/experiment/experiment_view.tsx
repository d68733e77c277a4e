// One experiment.
import type { Live } from '../../state/live';

export function ExperimentView(_: { live: Live }) {
  return <main class="hint" />;
}
