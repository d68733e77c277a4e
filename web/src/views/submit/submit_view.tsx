// A run to submit.
import type { Live } from '../../state/live';

export function SubmitView(_: { live: Live }) {
  return <main class="hint" />;
}
