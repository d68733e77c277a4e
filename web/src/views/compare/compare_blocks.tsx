// The depth profiles of several runs in one picture: flat where gradients pass unchanged, tilted where
// every block takes its part.
import { useEffect } from 'preact/hooks';
import { DepthProfile, type ProfileLine } from '../../blocks/depth_profile';
import { colourRange, profileAt } from '../../blocks/grid';
import { Heatmap, profileCurves } from '../../blocks/heatmap';
import { MetricChoice } from '../../blocks/metric_choice';
import { type Block, type BlockMetric, blocksOf, findMetric, seriesOf } from '../../blocks/metrics';
import { type Board, keepDetail, stepsShown } from '../../charts/board';
import { unionOfSteps } from '../../series/points';
import type { CurveSet } from '../../state/curve_set';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { pointsOfBlock, stepOf } from '../run/run_blocks';
import { useFollower } from '../shared/use_follower';

const fallbackLook = { colour: '#7f8897', dash: undefined };
// Each has a series for every block.
const mostRuns = 20;
// Of these runs, so many have a picture of their own, all with the same colours.
const mostHeatmaps = 5;

export function CompareBlocks({ live, board }: { live: Live; board: Board }) {
  const metric = findMetric(address.value.query.block);
  const runs = live.drawn.value.slice(0, mostRuns);
  const blocks = new Map(runs.map((run) => [run, blocksOf(live.runs.get(run)?.effectiveSpec)]));
  const names = new Set<string>();
  for (const some of blocks.values()) for (const one of some) names.add(seriesOf(one, metric));
  const most = pointsOfBlock(names.size * Math.max(1, runs.length));
  const curves = useFollower(live, [...names], most, runs);
  useEffect(() => keepDetail(board, curves), [board, curves]);
  return (
    <section aria-label="blocks">
      <div class="tools">
        <MetricChoice metric={metric} />
      </div>
      <div class="grid">
        <Pictures live={live} board={board} curves={curves} metric={metric} blocks={blocks} />
      </div>
    </section>
  );
}

interface PicturesProps {
  live: Live;
  board: Board;
  curves: CurveSet;
  metric: BlockMetric;
  blocks: ReadonlyMap<string, readonly Block[]>;
}

function Pictures({ live, board, curves, metric, blocks }: PicturesProps) {
  curves.depend();
  const at = stepOf(address.value.query.at);
  const drawn = board.runs.value.filter((run) => blocks.has(run));
  const found = drawn.map((run) =>
    profileCurves(curves, run, blocks.get(run) ?? [], metric, stepsShown(board, run)),
  );
  const lines = drawn.map(
    (run, index): ProfileLine => ({
      run,
      name: live.runs.peek(run)?.displayName ?? run,
      look: live.looks.value.get(run) ?? fallbackLook,
      profile: profileAt(found[index] ?? [], at ?? Number.POSITIVE_INFINITY),
    }),
  );
  const all = found.flat().flatMap((curve) => curve ?? []);
  const deepest = [...blocks.values()].reduce(
    (most, some) => (some.length > most.length ? some : most),
    [] as readonly Block[],
  );
  const values = all.flatMap((curve) => [...curve.values]);
  const steps = unionOfSteps(all);
  const choose = (step: number | undefined) =>
    setQuery({ at: step === undefined ? undefined : String(step) });
  return (
    <>
      <DepthProfile
        metric={metric}
        lines={lines}
        labels={deepest.map(({ label }) => label)}
        values={values}
        steps={steps}
        step={at}
        onStep={choose}
      />
      {drawn.slice(0, steps.length > 0 ? mostHeatmaps : 0).map((run) => (
        <Heatmap
          key={run}
          board={board}
          run={run}
          curves={curves}
          blocks={blocks.get(run) ?? []}
          metric={metric}
          colours={colourRange(values, metric.scale)}
          named
          step={at ?? steps.at(-1)}
          onStep={choose}
        />
      ))}
    </>
  );
}
