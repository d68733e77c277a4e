// A chart of one series of all runs of a board.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { stateLook } from '../format/state';
import { csvOf } from '../series/csv';
import type { CurveSet } from '../state/curve_set';
import { type Board, stepsShown, stepUnderCursor, xRange } from './board';
import { Chart } from './chart';
import { plotted, type YMode } from './chart_data';
import './charts.css';
import { cursorNote, cursorValue } from './cursor_text';
import { curveContent } from './lines';
import type { LineLook } from './palette';
import type { PlotContent } from './plot_content';
import { pointNote } from './point_note';
import { type PointsFile, partName, shownPoints } from './shown_points';
import { xUnits } from './tick_text';

interface Props {
  board: Board;
  series: string;
  title: string;
  unit?: string;
  /** Where the series is, if not among the board's own curves. */
  curves?: CurveSet;
  /** 'linear' for what is never looked at on a log axis. */
  y?: YMode;
}

const fallbackLook: LineLook = { colour: '#7f8897', dash: undefined };

export function CurveChart({ series, title, unit, ...props }: Props) {
  const board = useMemo(() => ownBoard(props), [props.board, props.curves, props.y]);
  return (
    <Chart
      id={series}
      title={title}
      {...(unit === undefined ? {} : { unit })}
      board={board.axis}
      content={() => contentOf(board, series)}
      csv={() => csv(board, series)}
      note={() => noteOf(board, series)}
    >
      <Here board={board} series={series} />
    </Chart>
  );
}

function ownBoard({ board, curves = board.curves, y }: Omit<Props, 'series' | 'title' | 'unit'>) {
  const look = y ? computed(() => ({ ...board.look.value, y })) : board.look;
  return { ...board, curves, look, axis: board };
}

// With the board whose curves tell how long the x axis is.
type OwnBoard = Board & { axis: Board };

function contentOf(board: OwnBoard, series: string): PlotContent {
  const { live, curves } = board;
  curves.depend();
  const runs = board.runs.value;
  const looks = live.looks.value;
  const lines = runs.map((run) => ({
    run,
    name: live.runs.peek(run)?.displayName ?? run,
    look: looks.get(run) ?? fallbackLook,
    points: curves.zoomed(run, series, stepsShown(board, run))?.drawn,
    firstBadStep: curves.held(run, series)?.firstNonFiniteStep,
    left: curves.abandoned(run).map((curve) => curve.series.get(series)),
    spikes: series === 'loss' ? board.spikes(run) : [],
    scale: board.scaleOf(run),
  }));
  board.axis.curves.depend();
  const others = board.stops.flatMap((name) =>
    name === series
      ? []
      : runs.flatMap((run) => {
          const points = board.axis.curves.zoomed(run, name, stepsShown(board, run))?.drawn;
          return points ? plotted(points, 'log', board.scaleOf(run)) : [];
        }),
  );
  return curveContent(lines, others, board.look.value, xRange(board.axis));
}

function Here({ board, series }: { board: OwnBoard; series: string }) {
  const { live, curves } = board;
  curves.depend();
  const runs = board.runs.value;
  const values = runs.flatMap((run) => {
    const name = live.runs.peek(run)?.displayName ?? run;
    const shown = curves.zoomed(run, series, stepsShown(board.axis, run));
    return cursorValue(name, shown?.drawn, stepUnderCursor(board.axis, run));
  });
  const text = cursorNote(values, runs.length);
  return (
    <span class="here" title={text}>
      {text || xUnits[board.look.value.x]}
    </span>
  );
}

function noteOf(board: OwnBoard, series: string): string {
  const { curves } = board;
  curves.depend();
  const runs = board.runs.value;
  const problem = runs.map((run) => curves.problem(run)).find((text) => text !== '');
  if (problem) return `could not be read: ${problem}; trying again`;
  const shown = runs.map((run) => curves.zoomed(run, series, stepsShown(board.axis, run)));
  // A run without points counts beside others that have some: not all of them are drawn then.
  const all = shown.flatMap((one) => one?.inside ?? []);
  const inside = all.some(({ total }) => total > 0) ? all : [];
  const text = pointNote(inside, board.look.value.y);
  if (text !== '' || runs.length === 0) return text;
  const waiting =
    runs.some((run) => curves.loading(run)) || shown.some((one) => one && !one.inside);
  return waiting ? 'reading…' : noPointsText(board, runs);
}

function noPointsText({ live }: Board, runs: readonly string[]): string {
  const ended = runs.every((run) => stateLook(live.runs.get(run)?.state).ended);
  return ended ? 'no points' : 'no points yet';
}

function csv({ live, curves, runs, ...board }: OwnBoard, series: string): PointsFile {
  const shown = runs.peek().map((run) => ({
    name: live.runs.peek(run)?.displayName ?? run,
    ...shownPoints(curves, run, series, stepsShown(board.axis, run)),
  }));
  const thinned = shown.some((one) => one.thinned);
  return {
    text: csvOf(
      ['run', 'step', series],
      shown.flatMap(({ name, points }) =>
        points.steps.map((step, index) => [name, step, points.values[index]]),
      ),
    ),
    name: [series, ...partName(board.look.peek().x, thinned)],
  };
}
