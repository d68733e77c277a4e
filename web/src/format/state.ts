// How a run's state is shown: never by colour alone, always a glyph and a word.
import type { Run_StateJson } from '../gen/normlab/v1/run_pb';

export interface StateLook {
  glyph: string;
  word: string;
  ended: boolean;
}

// U+FE0E asks for the plain glyph where fonts also have a coloured picture.
const looks: Record<Run_StateJson, StateLook> = {
  STATE_UNSPECIFIED: { glyph: '?', word: 'unknown', ended: false },
  STATE_QUEUED: { glyph: '○', word: 'queued', ended: false },
  STATE_STARTING: { glyph: '◔', word: 'starting', ended: false },
  STATE_RUNNING: { glyph: '●', word: 'running', ended: false },
  STATE_PAUSING: { glyph: '⏸\uFE0E', word: 'pausing', ended: false },
  STATE_PAUSED: { glyph: '⏸\uFE0E', word: 'paused', ended: false },
  STATE_CANCELLING: { glyph: '◼\uFE0E', word: 'cancelling', ended: false },
  STATE_SUCCEEDED: { glyph: '✓', word: 'succeeded', ended: true },
  STATE_FAILED: { glyph: '✕', word: 'failed', ended: true },
  STATE_CANCELLED: { glyph: '◼\uFE0E', word: 'cancelled', ended: true },
  STATE_DIVERGED: { glyph: '⚡\uFE0E', word: 'diverged', ended: true },
  STATE_TIMED_OUT: { glyph: '⏱\uFE0E', word: 'timed out', ended: true },
};

/** A state that a newer server knows and this page does not is shown as unknown. */
export function stateLook(state: Run_StateJson | undefined): StateLook {
  return looks[state ?? 'STATE_UNSPECIFIED'] ?? looks.STATE_UNSPECIFIED;
}
