// The values of runs at the cursor. Components of their own, because they change with every move of it.
import { type Board, stepsShown, stepUnderCursor } from '../../charts/board';
import { valueText } from '../../charts/cursor_text';
import { formatCount, formatValue } from '../../format/format';
import { type Band, medianBand } from '../../series/derived';
import { valueAt } from '../../series/points';
import { drawnSeries } from '../../state/curve_store';
import { cursorStep } from '../../state/selection';

const titles = { loss: 'loss', gradient_norm: 'grad' } as const;

export function CursorHeads() {
  const step = cursorStep.value;
  const at = step === undefined ? '@ cursor' : `@ ${formatCount(step)}`;
  return (
    <>
      {drawnSeries.map((name) => (
        <th key={name} scope="col" class="number at-cursor" title="at the place under the cursor">
          {titles[name]} {at}
        </th>
      ))}
    </>
  );
}

/** `runs`: those of the row that are drawn; of several it is the median. */
export function CursorCells({ board, runs }: { board: Board; runs: readonly string[] }) {
  return (
    <>
      {drawnSeries.map((name) => (
        <td key={name} class="number at-cursor">
          {textAt(board, runs, name)}
        </td>
      ))}
    </>
  );
}

function textAt(board: Board, runs: readonly string[], name: string): string {
  const [run] = runs;
  if (run === undefined) return '';
  if (runs.length > 1) return formatValue(bandUnderCursor(board, runs, name)?.median[0]);
  const step = stepUnderCursor(board, run);
  if (step === undefined) return '';
  return valueText(board.curves.zoomed(run, name, stepsShown(board, run))?.drawn, step);
}

/** The band of some runs at the step that is under the cursor in the first of them. */
export function bandUnderCursor(
  board: Board,
  runs: readonly string[],
  name: string,
): Band | undefined {
  const step = runs[0] === undefined ? undefined : stepUnderCursor(board, runs[0]);
  if (step === undefined) return undefined;
  const points = runs.flatMap((run) => {
    const drawn = board.curves.zoomed(run, name, stepsShown(board, run))?.drawn;
    const value = drawn && valueAt(drawn, step);
    return drawn ? [{ steps: value === undefined ? [] : [step], values: [value ?? 0] }] : [];
  });
  const band = medianBand(points);
  return band.steps.length > 0 ? band : undefined;
}
