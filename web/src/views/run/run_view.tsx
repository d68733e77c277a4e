// One run.
import type { Live } from '../../state/live';

export function RunView(_: { live: Live }) {
  return <main class="hint" />;
}
