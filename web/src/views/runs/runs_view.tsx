// All runs, and the curves of those that are selected.
import './runs.css';
import { useEffect, useMemo } from 'preact/hooks';
import { keepDetail, plainBoard } from '../../charts/board';
import { ChartTools } from '../../charts/chart_tools';
import { CurveChart } from '../../charts/curve_chart';
import { formatCount, formatLarge } from '../../format/format';
import { progressText } from '../../format/run_text';
import { stateLook } from '../../format/state';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import { address } from '../../state/router';
import { select } from '../../state/selection';
import { addressOf } from '../../state/url_state';
import { CopyLink } from '../shared/copy_link';
import { RunActionsBar } from '../shared/run_actions_bar';
import { ListBar } from './list_bar';
import { RowMenu } from './row_menu';
import { heldStep } from './run_cells';
import { RunTable } from './run_table';

export function RunsView({ live }: { live: Live }) {
  const { query } = address.value;
  const isEmpty = live.query.listed.value && live.query.ids.value.length === 0;
  const hasNone = isEmpty && !query.filter && live.drawn.value.length === 0;
  if (hasNone) {
    return (
      <main class="runs">
        <Problem live={live} />
        <NoRuns />
      </main>
    );
  }
  return (
    <main class={`runs${live.drawn.value.length > 0 ? '' : ' no-curves'}`}>
      <h1 class="hidden">Runs</h1>
      <Problem live={live} />
      <ListBar live={live} />
      <RunTable live={live} />
      {isEmpty ? <NoneFound /> : null}
      <Curves live={live} />
      <RowMenu live={live} />
    </main>
  );
}

function Problem({ live }: { live: Live }) {
  if (!live.problem.value) return null;
  return (
    <p class="problem" role="alert">
      The experiments could not be read: {live.problem.value}; trying again.
    </p>
  );
}

function NoRuns() {
  return (
    <section class="hint">
      <p>No runs yet. They appear here by themselves.</p>
      <p>
        Start the article's three runs with <code>normlab article</code>, or one of your own with{' '}
        <code>normlab submit --placement post --layers 12 --watch</code>, or{' '}
        <a href={addressOf('submit')}>submit one here</a>.
      </p>
    </section>
  );
}

function NoneFound() {
  return (
    <p class="hint">
      No run is like that. A search takes words of a name, note or label, and conditions such as{' '}
      <code>state=running</code>, <code>user=lab1</code>, <code>loss&lt;0.1</code>,{' '}
      <code>layers&gt;=12</code>; archived runs come with <code>archived:*</code>.
    </p>
  );
}

function Curves({ live }: { live: Live }) {
  const drawn = live.drawn.value;
  const board = useMemo(() => plainBoard(live), [live]);
  useEffect(() => keepDetail(board), [board]);
  const { y } = board.look.value;
  return (
    <section class="curves" aria-label="Curves of the selected runs">
      <div class="strip">
        <Selection live={live} drawn={drawn} />
        <RunActionsBar live={live} ids={live.chosen.value} />
        <span class="space" />
        {drawn.length > 0 ? <ChartTools board={board} /> : null}
        {drawn.length > 0 ? (
          <button type="button" onClick={() => select([])} title="Draw no runs">
            clear
          </button>
        ) : null}
        <CopyLink />
      </div>
      {drawn.length > 0 ? (
        <div class="charts">
          <CurveChart board={board} series="loss" title={`loss (${y})`} unit="nats per token" />
          <CurveChart
            board={board}
            series="gradient_norm"
            title={`gradient norm (${y}, before clipping)`}
            unit="L2 norm over all parameters"
          />
        </div>
      ) : null}
    </section>
  );
}

function Selection({ live, drawn }: { live: Live; drawn: readonly string[] }) {
  if (drawn.length === 0) return <span class="secondary">Select runs to see their curves.</span>;
  const chosen = live.chosen.value.length;
  const only = drawn.length === 1 ? live.runs.get(drawn[0] as string) : undefined;
  if (!only) {
    return (
      <>
        <span>{formatCount(chosen)} runs</span>
        {chosen > drawn.length ? (
          <span class="secondary">the first {formatCount(drawn.length)} are drawn</span>
        ) : null}
        <a class="button" href={addressOf('compare', '', { runs: drawn.join() })}>
          compare
        </a>
      </>
    );
  }
  const look = stateLook(only.state);
  return (
    <span class="only">
      <b title={only.displayName}>{only.displayName}</b>
      <span class={`state ${look.word.replace(' ', '-')}`}>
        {look.glyph} {look.word}
      </span>
      <span>{progressText(only, heldStep(live, only.id ?? ''))}</span>
      <span class="secondary">{details(only)}</span>
    </span>
  );
}

function details(run: RunJson): string {
  const parts: string[] = [];
  const device = run.attempts?.at(-1)?.device;
  if (device) parts.push(`device ${device}`);
  const parameters = Number(run.summary?.parameterCount ?? 0);
  if (parameters > 0) parts.push(`${formatCount(parameters)} parameters`);
  const flops = Number(run.summary?.flopsPerStep ?? 0);
  if (flops > 0) parts.push(`${formatLarge(flops)}FLOP a step`);
  return parts.join(' · ');
}
