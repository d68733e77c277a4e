// What happens in the blocks of one run.
import { useEffect } from 'preact/hooks';
import { DepthProfile } from '../../blocks/depth_profile';
import { profileAt } from '../../blocks/grid';
import { Heatmap, profileCurves } from '../../blocks/heatmap';
import { MetricChoice } from '../../blocks/metric_choice';
import { blocksOf, findMetric, seriesOf } from '../../blocks/metrics';
import { type Board, keepDetail, stepsShown } from '../../charts/board';
import { unionOfSteps } from '../../series/points';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { useFollower } from '../shared/use_follower';

interface Props {
  live: Live;
  board: Board;
  id: string;
}

const fallbackLook = { colour: '#7f8897', dash: undefined };

export function RunBlocks({ live, board, id }: Props) {
  const { query } = address.value;
  const metric = findMetric(query.block);
  const run = live.runs.get(id);
  const blocks = blocksOf(run?.effectiveSpec);
  const names = blocks.map((block) => seriesOf(block, metric));
  const curves = useFollower(live, names, pointsOfBlock(blocks.length), [id]);
  useEffect(() => keepDetail(board, curves), [board, curves]);
  curves.depend();
  const found = profileCurves(curves, id, blocks, metric, stepsShown(board, id));
  const steps = unionOfSteps(found.flatMap((curve) => curve ?? []));
  const at = stepOf(query.at);
  const choose = (step: number | undefined) =>
    setQuery({ at: step === undefined ? undefined : String(step) });
  const look = live.looks.value.get(id) ?? fallbackLook;
  const profile = profileAt(found, at ?? Number.POSITIVE_INFINITY);
  return (
    <>
      <div class="tools">
        <MetricChoice metric={metric} />
      </div>
      <div class="grid">
        <Heatmap
          board={board}
          run={id}
          curves={curves}
          blocks={blocks}
          metric={metric}
          step={at ?? steps.at(-1)}
          onStep={choose}
        />
        <DepthProfile
          metric={metric}
          lines={[{ run: id, name: run?.displayName ?? id, look, profile }]}
          labels={blocks.map(({ label }) => label)}
          values={found.flatMap((curve) => [...(curve?.values ?? [])])}
          steps={steps}
          step={at}
          onStep={choose}
        />
      </div>
    </>
  );
}

/** The step in an address; undefined: the latest. */
export function stepOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** As many points of each block as a picture has use for, and no more than a page can bear. */
export function pointsOfBlock(blocks: number): number {
  return Math.round(Math.min(1000, Math.max(100, 100_000 / Math.max(1, blocks))));
}
