import './runs.css';
import { CurveChart } from '../../charts/curve_chart';
import { formatCount, formatLarge } from '../../format/format';
import { progressText } from '../../format/run_text';
import { stateLook } from '../../format/state';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import { cursorStep, zoom, zoomTo } from '../../state/selection';
import { heldStep } from './run_row';
import { RunTable } from './run_table';

export function RunsView({ live }: { live: Live }) {
  const empty = live.listed.value && live.runs.ids.value.length === 0;
  return (
    <main class="runs">
      {live.problem.value ? (
        <p class="problem" role="alert">
          The list of runs could not be read: {live.problem.value}
        </p>
      ) : null}
      {empty ? <NoRuns /> : <RunTable live={live} />}
      {empty ? null : <Curves live={live} />}
    </main>
  );
}

function NoRuns() {
  return (
    <section class="hint">
      <p>No runs yet. They appear here by themselves.</p>
      <p>
        Start the article's three runs with <code>normlab article</code>, or one of your own with{' '}
        <code>normlab submit --placement post --layers 12 --watch</code>.
      </p>
    </section>
  );
}

function Curves({ live }: { live: Live }) {
  const drawn = live.drawn.value;
  return (
    <section class="curves" aria-label="Curves of the selected runs">
      <div class="strip">
        <Selection live={live} drawn={drawn} />
        <span class="space" />
        {cursorStep.value !== undefined ? <span>step {formatCount(cursorStep.value)}</span> : null}
        {zoom.value ? (
          <button type="button" onClick={() => zoomTo(undefined)} title="Or double-click a chart">
            steps {formatCount(zoom.value.from)} to {formatCount(zoom.value.to)} · show all
          </button>
        ) : null}
        <button type="button" onClick={() => navigator.clipboard?.writeText(location.href)}>
          copy link
        </button>
      </div>
      <div class="charts">
        <CurveChart live={live} series="loss" title="loss (log)" />
        <CurveChart
          live={live}
          series="gradient_norm"
          title="gradient norm (log, before clipping)"
        />
      </div>
    </section>
  );
}

function Selection({ live, drawn }: { live: Live; drawn: readonly string[] }) {
  if (drawn.length === 0) return <span class="secondary">Select runs to see their curves.</span>;
  const only = drawn.length === 1 ? live.runs.get(drawn[0] as string) : undefined;
  if (!only) return <span>{formatCount(drawn.length)} runs</span>;
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
