// Runs beside each other: their curves, what they amount to, how they differ, and their blocks.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Board } from '../../charts/board';
import { ChartTools } from '../../charts/chart_tools';
import { CurveChart } from '../../charts/curve_chart';
import { seedGroups } from '../../compare/seeds';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { parseIds } from '../../state/url_state';
import { boardSeries, useBoard } from '../shared/use_board';
import './compare.css';
import { CompareBlocks } from './compare_blocks';
import { DifferenceChart } from './difference_chart';
import { GroupChart } from './group_chart';
import { OutcomeTable } from './outcome_table';

/** Runs that are listed but not drawn. */
export const hidden = computed(() => new Set(parseIds(address.value.query.hide) ?? []));

export function toggleHidden(runs: readonly string[]): void {
  const now = new Set(hidden.peek());
  const allHidden = runs.every((run) => now.has(run));
  for (const run of runs) {
    if (allHidden) now.delete(run);
    else now.add(run);
  }
  setQuery({ hide: now.size > 0 ? [...now].join() : undefined });
}

const seedsTogether = computed(() => address.value.query.seeds === 'median');

/** `runs`: those that are listed. Of them the selected ones that are not hidden are drawn. */
export function Comparison({ live, runs }: { live: Live; runs: readonly RunJson[] }) {
  const { board: all, hasTimes } = useBoard(live, boardSeries);
  const board = useMemo<Board>(
    () => ({
      ...all,
      runs: computed(() => live.drawn.value.filter((run) => !hidden.value.has(run))),
    }),
    [all, live],
  );
  const groups = seedGroups(runs);
  const hasSeeds = groups.some((group) => group.runs.length > 1);
  const together = seedsTogether.value && hasSeeds;
  const { y } = board.look.value;
  return (
    <>
      <div class="tools-line">
        <ChartTools board={board} hasTimes={hasTimes} />
        {hasSeeds ? (
          <label title="One line for runs that differ only in their seed: the median, with the lowest and highest run, or from five seeds on the quartiles, as its band">
            <input
              type="checkbox"
              checked={together}
              onChange={() => setQuery({ seeds: together ? undefined : 'median' })}
            />{' '}
            seeds as median with band
          </label>
        ) : null}
      </div>
      <div class="grid">
        {together ? (
          <>
            <GroupChart board={board} groups={groups} series="loss" title={`loss (${y})`} />
            <GroupChart
              board={board}
              groups={groups}
              series="gradient_norm"
              title={`gradient norm (${y}, before clipping)`}
            />
          </>
        ) : (
          <>
            <CurveChart board={board} series="loss" title={`loss (${y})`} unit="nats per token" />
            <CurveChart
              board={board}
              series="gradient_norm"
              title={`gradient norm (${y}, before clipping)`}
              unit="L2 norm over all parameters"
            />
          </>
        )}
      </div>
      <OutcomeTable live={live} board={board} runs={runs} groups={together ? groups : undefined} />
      <DifferenceChart live={live} board={board} />
      <CompareBlocks live={live} board={board} />
    </>
  );
}
