// The cells of a run's row, by column.
import { valueText as atStep } from '../../charts/cursor_text';
import { formatValue } from '../../format/format';
import { plannedSteps, progressShare, progressText } from '../../format/run_text';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Column } from '../../state/columns';
import type { DrawnSeries } from '../../state/curve_store';
import type { Live } from '../../state/live';
import { cursorStep, selected, zoom } from '../../state/selection';
import { trendPath } from '../../state/trends';

interface CellProps {
  live: Live;
  run: RunJson;
  id: string;
  column: Column;
  nameOf: (id: string) => string | undefined;
}

export function RunCell({ live, run, id, column, nameOf }: CellProps) {
  switch (column.name) {
    case 'step':
      return <StepCell live={live} run={run} id={id} />;
    case 'trend':
      return <TrendCell live={live} run={run} id={id} />;
    case 'loss':
    case 'gradient_norm':
      return (
        <td class="number value" title={column.help}>
          {valueText(live, run, id, column.name)}
        </td>
      );
    default: {
      const text = column.text(run, nameOf);
      const kind = column.isNumber ? 'number' : 'secondary';
      const isShort = column.isNumber || column.name === 'priority';
      return (
        <td class={`${kind} ${column.name}`} title={isShort ? column.help : text}>
          {text}
        </td>
      );
    }
  }
}

function StepCell({ live, run, id }: { live: Live; run: RunJson; id: string }) {
  const held = selected.value.includes(id) ? heldStep(live, id) : 0;
  return (
    <td class="step">
      <span class="count" title="steps">
        {progressText(run, held)}
      </span>
      <progress
        max={1}
        value={progressShare(run, held)}
        aria-label="part of the run that is done"
      />
    </td>
  );
}

const trendWidth = 64;
const trendHeight = 18;

function TrendCell({ live, run, id }: { live: Live; run: RunJson; id: string }) {
  const trend = live.trends.trend(id);
  const path = trend ? trendPath(trend, plannedSteps(run), trendWidth, trendHeight) : '';
  return (
    <td title="loss over all planned steps, by its logarithm">
      {path ? (
        <svg class="sparkline" viewBox={`0 0 ${trendWidth} ${trendHeight}`} aria-hidden="true">
          <path d={path} />
        </svg>
      ) : null}
    </td>
  );
}

/** A drawn run's last step here: its points come sooner than word of its progress. */
export function heldStep(live: Live, id: string): number {
  live.curves.version.value;
  return live.curves.curve(id)?.series.get('loss')?.lastStep ?? 0;
}

// A drawn run: at the cursor, else its last point. Others: what the server last said, which comes
// several times a second while they run. Only drawn rows depend on the curves and the cursor, which
// change with every frame.
function valueText(live: Live, run: RunJson, id: string, name: DrawnSeries): string {
  if (selected.value.includes(id)) {
    live.drawnCurves.depend();
    const series = live.drawnCurves.held(id, name);
    const step = cursorStep.value;
    if (series && step !== undefined) {
      return atStep(live.drawnCurves.zoomed(id, name, zoom.value)?.drawn, step);
    }
    if (series && series.values.length > 0) return formatValue(series.values.at(-1));
  }
  const last = name === 'loss' ? run.summary?.finalLoss : run.summary?.finalGradientNorm;
  return last === undefined ? '' : formatValue(Number(last));
}
