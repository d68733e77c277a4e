// The values of a run at the cursor. Components of their own, because they change with every move of it.
import { formatCount, formatValue } from '../../format/format';
import { drawnSeries } from '../../state/curve_store';
import type { Live } from '../../state/live';
import { cursorStep } from '../../state/selection';

const titles = { loss: 'loss', gradient_norm: 'grad' } as const;

export function CursorHeads() {
  const step = cursorStep.value;
  const at = step === undefined ? '@ cursor' : `@ ${formatCount(step)}`;
  return (
    <>
      {drawnSeries.map((name) => (
        <th key={name} scope="col" class="number at-cursor" title="at the step under the cursor">
          {titles[name]} {at}
        </th>
      ))}
    </>
  );
}

/** `run`: undefined while it is not drawn. */
export function CursorCells({ live, run }: { live: Live; run: string | undefined }) {
  const step = cursorStep.value;
  return (
    <>
      {drawnSeries.map((name) => (
        <td key={name} class="number at-cursor">
          {run === undefined || step === undefined ? '' : textAt(live, run, name, step)}
        </td>
      ))}
    </>
  );
}

function textAt(live: Live, run: string, name: string, step: number): string {
  const series = live.drawnCurves.held(run, name);
  if (!series) return '';
  return series.lacks(step) ? 'no point' : formatValue(series.at(step));
}
