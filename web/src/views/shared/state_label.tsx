// A run's state: a glyph and a word, never colour alone.
import { stateLook } from '../../format/state';
import type { Run_StateJson } from '../../gen/normlab/v1/run_pb';

export function StateLabel({ state }: { state: Run_StateJson | undefined }) {
  const look = stateLook(state);
  return (
    <span class={`state ${look.word.replace(' ', '-')}`}>
      <span class="glyph" aria-hidden="true">
        {look.glyph}
      </span>
      {look.word}
    </span>
  );
}
