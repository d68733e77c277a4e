// Queue and devices.
import type { Live } from '../../state/live';

export function QueueView(_: { live: Live }) {
  return <main class="hint" />;
}
