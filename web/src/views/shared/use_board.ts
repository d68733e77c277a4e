// The board of a view with more than two charts.
import { computed, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Board, keepDetail } from '../../charts/board';
import { look } from '../../charts/look';
import type { RunSpecJson } from '../../gen/normlab/v1/run_spec_pb';
import type { Points } from '../../series/points';
import { byStep, byTime, byTokens, tokensPerStep, type XMode } from '../../series/x_axis';
import type { CurveSet } from '../../state/curve_set';
import type { Live } from '../../state/live';
import { useFollower } from './use_follower';

/** Series of single numbers besides loss and gradient norm that charts of runs use. */
export const moreSeries = [
  'learning_rate',
  'tokens_per_second',
  'step_milliseconds',
  'spike',
  'validation_loss',
] as const;

const maxPoints = 2000;

/** What the board itself needs of them. */
export const boardSeries = ['step_milliseconds', 'spike'] as const;

export interface ViewBoard {
  board: Board;
  /** Has `moreSeries`. */
  more: CurveSet;
  /** It is known of every run how long its steps took. */
  hasTimes: ReadonlySignal<boolean>;
}

/** `names`: which of `moreSeries` are wanted. */
export function useBoard(live: Live, names: readonly string[] = moreSeries): ViewBoard {
  const more = useFollower(live, names, maxPoints, live.drawn.value);
  const board = useMemo(() => boardOf(live, more), [live, more]);
  useEffect(() => {
    const stops = [keepDetail(board), keepDetail(board, more)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [board, more]);
  // A signal, which changes once and not with every point.
  const hasTimes = useMemo(
    () =>
      computed(() => live.drawn.value.every((run) => hasPoints(more, run, 'step_milliseconds'))),
    [live, more],
  );
  return { board, more, hasTimes };
}

export function hasPoints(curves: CurveSet, run: string, name: string): boolean {
  curves.depend();
  return (curves.held(run, name)?.total ?? 0) > 0;
}

function boardOf(live: Live, more: CurveSet): Board {
  const scales = computed(() => {
    const { x } = look.value;
    if (x === 'time') more.depend();
    return new Map(
      live.drawn.value.map((run) => {
        const spec = live.runs.peek(run)?.effectiveSpec;
        return [run, scaleOf(x, spec, more.held(run, 'step_milliseconds'))] as const;
      }),
    );
  });
  return {
    live,
    curves: live.drawnCurves,
    runs: live.drawn,
    look,
    stops: ['loss', 'gradient_norm'],
    scaleOf: (run) => scales.value.get(run) ?? byStep,
    spikes: (run) => {
      more.depend();
      return spikesIn(more.held(run, 'spike'));
    },
  };
}

function scaleOf(x: XMode, spec: RunSpecJson | undefined, took: Points | undefined) {
  if (x === 'tokens') return byTokens(tokensPerStep(spec));
  return x === 'time' && took ? byTime(took) : byStep;
}

function spikesIn(flags: Points | undefined): number[] {
  return flags?.steps.filter((_, index) => flags.values[index] === 1) ?? [];
}
