// Runs beside each other.
import type { Live } from '../../state/live';

export function CompareView(_: { live: Live }) {
  return <main class="hint" />;
}
