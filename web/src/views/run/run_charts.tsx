// The curves of one run.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { ChartTools } from '../../charts/chart_tools';
import { CurveChart } from '../../charts/curve_chart';
import type { Live } from '../../state/live';
import { hasPoints, useBoard } from '../shared/use_board';
import { RunBlocks } from './run_blocks';

export function RunCharts({ live, id }: { live: Live; id: string }) {
  const { board, more, hasTimes } = useBoard(live);
  const { y } = board.look.value;
  const validates = useMemo(
    () => computed(() => hasPoints(more, id, 'validation_loss')),
    [more, id],
  );
  return (
    <section aria-label="curves">
      <ChartTools board={board} hasTimes={hasTimes} />
      <div class="grid">
        <CurveChart board={board} series="loss" title={`loss (${y})`} unit="nats per token" />
        <CurveChart
          board={board}
          series="gradient_norm"
          title={`gradient norm (${y}, before clipping)`}
          unit="L2 norm over all parameters"
        />
        <CurveChart
          board={board}
          curves={more}
          series="learning_rate"
          title={`learning rate (${y})`}
        />
        <CurveChart
          board={board}
          curves={more}
          series="tokens_per_second"
          title="speed (linear)"
          unit="tokens per second"
          y="linear"
        />
        {validates.value ? (
          <CurveChart
            board={board}
            curves={more}
            series="validation_loss"
            title={`validation loss (${y})`}
            unit="nats per token"
          />
        ) : null}
      </div>
      <RunBlocks live={live} board={board} id={id} />
    </section>
  );
}
