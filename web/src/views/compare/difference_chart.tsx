// One run minus another, step by step.
import { computed } from '@preact/signals';
import { type Board, stepsShown, stepUnderCursor, xRange } from '../../charts/board';
import { Chart } from '../../charts/chart';
import { curveContent, derivedCurve } from '../../charts/lines';
import { palette } from '../../charts/palette';
import type { PlotContent } from '../../charts/plot_content';
import { partName, type ShownPoints, shownPoints, thinnedNote } from '../../charts/shown_points';
import { formatCount, formatValue, isolated } from '../../format/format';
import { csvOf } from '../../series/csv';
import { difference } from '../../series/derived';
import { noPoints, valueAt, within } from '../../series/points';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { parseIds } from '../../state/url_state';

const ink = { colour: palette[3], dash: undefined };

/** The two runs in the address; else the first two that are drawn. */
const chosen = computed(() => parseIds(address.value.query.diff) ?? []);

export function DifferenceChart({ live, board }: { live: Live; board: Board }) {
  const runs = live.drawn.value;
  const pair = pairOf(runs);
  if (!pair) return null;
  const [a, b] = pair;
  const nameOf = (run: string) => live.runs.get(run)?.displayName ?? run;
  const choice = (now: string, label: string, choose: (run: string) => void) => (
    <label>
      {label}{' '}
      <select value={now} onChange={(event) => choose(event.currentTarget.value)}>
        {runs.map((run) => (
          <option key={run} value={run}>
            {nameOf(run)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <section aria-label="difference of two runs">
      <div class="tools">
        {choice(a, 'difference:', (run) => setQuery({ diff: `${run},${b}` }))}
        {choice(b, 'minus', (run) => setQuery({ diff: `${a},${run}` }))}
      </div>
      <div class="grid">
        {(['loss', 'gradient_norm'] as const).map((series) => (
          <Difference key={series} board={board} series={series} />
        ))}
      </div>
    </section>
  );
}

function pairOf(runs: readonly string[]): [string, string] | undefined {
  const [a = runs[0], b = runs.find((run) => run !== a)] = chosen.value.filter((run) =>
    runs.includes(run),
  );
  return a !== undefined && b !== undefined ? [a, b] : undefined;
}

function Difference({ board, series }: { board: Board; series: string }) {
  const title = `difference in ${series.replace('_', ' ')} (linear)`;
  const csv = () => {
    const { points, thinned } = shownOf(board, series);
    const [a = '', b = ''] = pairNames(board);
    return {
      text: csvOf(
        ['run', 'minus', 'step', `difference_${series}`],
        points.steps.map((step, index) => [a, b, step, points.values[index]]),
      ),
      name: ['difference', series, ...partName(board.look.peek().x, thinned)],
    };
  };
  return (
    <Chart
      id={`difference-${series}`}
      title={title}
      board={board}
      content={() => contentOf(board, series)}
      csv={csv}
      note={() => noteOf(board, series)}
    >
      <Here board={board} series={series} />
    </Chart>
  );
}

function noteOf(board: Board, series: string): string {
  const { points, thinned } = shownOf(board, series);
  const steps = points.steps.length;
  return `${formatCount(steps)} steps in both${thinned ? thinnedNote : ''}`;
}

function pairNames(board: Board): string[] {
  const pair = pairOf(board.live.drawn.value) ?? [];
  return pair.map((run) => board.live.runs.peek(run)?.displayName ?? run);
}

function Here({ board, series }: { board: Board; series: string }) {
  const pair = pairOf(board.live.drawn.value);
  const step = pair && stepUnderCursor(board, pair[0]);
  const [a, b] = (pair ?? []).map((run) => {
    const drawn = board.curves.zoomed(run, series, stepsShown(board, run))?.drawn;
    return drawn && step !== undefined ? valueAt(drawn, step) : undefined;
  });
  const text =
    step === undefined || a === undefined || b === undefined
      ? 'below zero: the first is lower'
      : `step ${formatCount(step)}: ${formatValue(a - b)}`;
  return <span class="here">{text}</span>;
}

// Both on straight lines between their points, also those that the zoom has at its edges.
function shownOf(board: Board, series: string): ShownPoints {
  board.curves.depend();
  const pair = pairOf(board.live.drawn.value);
  const [a, b] = (pair ?? []).map((run) =>
    shownPoints(board.curves, run, series, stepsShown(board, run)),
  );
  if (!pair || !a || !b) return { points: noPoints, thinned: false, drawn: noPoints };
  const drawn = difference(a.drawn, b.drawn);
  const range = stepsShown(board, pair[0]);
  const points = range ? within(drawn, range.from, range.to) : drawn;
  return { points, thinned: a.thinned || b.thinned, drawn };
}

function contentOf(board: Board, series: string): PlotContent {
  const [a = ''] = pairOf(board.live.drawn.value) ?? [];
  const line = derivedCurve(
    'difference',
    pairNames(board).map(isolated).join(' − '),
    ink,
    shownOf(board, series).drawn,
    board.scaleOf(a),
  );
  return curveContent([line], [], { ...board.look.value, y: 'linear' }, xRange(board));
}
