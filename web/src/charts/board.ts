// What the charts of a view have in common: the runs, how they are drawn, and where the cursor is.
import { computed, effect, type ReadonlySignal } from '@preact/signals';
import { plannedSteps } from '../format/run_text';
import { byStep, type XScale } from '../series/x_axis';
import type { Range } from '../series/zoomed';
import type { CurveSet } from '../state/curve_set';
import type { Live } from '../state/live';
import { cursorStep, cursorX, zoom } from '../state/selection';
import { stepRange } from './axes';
import { type ChartLook, plainLook } from './lines';
import { look } from './look';

export interface Board {
  live: Live;
  curves: CurveSet;
  runs: ReadonlySignal<readonly string[]>;
  look: ReadonlySignal<ChartLook>;
  /** At the points of these series the cursor of every chart stops. */
  stops: readonly string[];
  scaleOf(run: string): XScale;
  spikes(run: string): readonly number[];
}

/** A board of the selected runs, always over steps. */
export function plainBoard(live: Live): Board {
  return {
    live,
    curves: live.drawnCurves,
    runs: live.drawn,
    look: computed(() => ({ ...look.value, x: plainLook.x })),
    stops: ['loss', 'gradient_norm'],
    scaleOf: () => byStep,
    spikes: () => [],
  };
}

/** The steps of a run that a zoomed chart shows; undefined: all. */
export function stepsShown(board: Board, run: string): Range | undefined {
  const range = zoom.value;
  if (!range) return undefined;
  const scale = board.scaleOf(run);
  const to = Math.ceil(scale.stepAt(range.to));
  // When a step that has not come will be there is guessed anew with each that does; a range that
  // moved with the guess would be read from the server again and again.
  const isGuess =
    board.look.value.x === 'time' && to > (board.curves.held(run, 'loss')?.lastStep ?? 0);
  return {
    from: Math.max(0, Math.floor(scale.stepAt(range.from))),
    to: isGuess ? Math.max(1, plannedSteps(board.live.runs.peek(run) ?? {})) : to,
  };
}

/** Keeps the detail of what is zoomed to at hand; returns what ends that. */
export function keepDetail(board: Board, curves: CurveSet = board.curves): () => void {
  const stop = effect(() => {
    curves.depend();
    curves.readDetail(
      new Map(board.runs.value.map((run) => [run, stepsShown(board, run)] as const)),
    );
  });
  return () => {
    stop();
    curves.stop();
  };
}

/** What the x axis spans, the same in all charts of a board: they share it. */
export function xRange(board: Board): [number, number] {
  const range = zoom.value;
  return range ? [range.from, range.to] : wholeRange(board);
}

/** What it spans while nothing is zoomed. */
export function wholeRange(board: Board): [number, number] {
  board.curves.depend();
  let end = 1;
  const ranges = board.runs.value.map((run) => {
    const last = board.curves.held(run, 'loss')?.lastStep ?? 0;
    const planned = plannedSteps(board.live.runs.peek(run) ?? {});
    return { run, last, planned };
  });
  if (board.look.value.x === 'step') {
    return stepRange(
      Math.max(0, ...ranges.map(({ last }) => last)),
      Math.max(0, ...ranges.map(({ planned }) => planned)),
    );
  }
  for (const { run, last, planned } of ranges) {
    end = Math.max(end, board.scaleOf(run).of(stepRange(last, planned)[1]));
  }
  return [0, end];
}

/** Puts the cursor at a place of the x axis; a step only where it is the same one in all runs. */
export function setCursor(board: Board, x: number | undefined): void {
  const steps = new Set(
    x === undefined ? [] : board.runs.value.map((run) => Math.round(board.scaleOf(run).stepAt(x))),
  );
  cursorStep.value = steps.size === 1 ? [...steps][0] : undefined;
  cursorX.value = x;
}

/** The step of a run that is under the cursor; undefined: the cursor is nowhere. */
export function stepUnderCursor(board: Board, run: string): number | undefined {
  const x = cursorX.value;
  return x === undefined ? undefined : Math.round(board.scaleOf(run).stepAt(x));
}
