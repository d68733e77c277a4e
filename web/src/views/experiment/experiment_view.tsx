// One experiment: its runs beside each other, and what its kind has to show besides: published figures for
// a preset that has them, a table over two settings for a sweep.
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { ApiError } from '../../api/client';
import { formatCount } from '../../format/format';
import { differingSettings, settingNames } from '../../format/settings';
import type { ExperimentJson, PresetJson } from '../../gen/normlab/v1/experiment_service_pb';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import { address } from '../../state/router';
import { select, selectionIsMade } from '../../state/selection';
import { addressOf } from '../../state/url_state';
import { Comparison } from '../compare/comparison';
import { CopyLink } from '../shared/copy_link';
import '../run/run.css';
import { ConfirmButton } from '../shared/confirm_button';
import { sayProblem } from '../shared/said';
import { PublishedTable } from './published_table';
import { SweepTable } from './sweep_table';

// All of a large sweep would be a tangle, and a stream of every one of its points.
const drawnAtFirst = 30;

const presets = signal<readonly PresetJson[]>([]);

export function ExperimentView({ live }: { live: Live }) {
  const { id } = address.value;
  const problem = useMemo(() => signal(''), [id]);
  const found = useMemo(() => signal<ExperimentJson | undefined>(undefined), [id]);
  const runs = runsOf(live, id);
  const isLive = live.connection.value.kind === 'live';

  useEffect(() => {
    // What could not be read while the server was away is read when it is back.
    if (found.peek() || (problem.peek() && !isLive)) return;
    read(live, id).then(
      (experiment) => {
        found.value = experiment;
        problem.value = '';
      },
      (error: unknown) => {
        const isAbsent = error instanceof ApiError && error.code === 404;
        problem.value = isAbsent
          ? `There is no experiment ${id}.`
          : `The experiment could not be read: ${error instanceof Error ? error.message : error}`;
      },
    );
  }, [live, id, isLive]);
  useEffect(() => {
    if (!found.value || selectionIsMade.value || runs.length === 0) return;
    select(runs.slice(0, drawnAtFirst).flatMap((run) => run.id ?? []));
  }, [found.value, selectionIsMade.value, runs.length]);

  if (problem.value && runs.length === 0) {
    return (
      <main class="hint">
        <p role="alert">{problem.value}</p>
        <p>
          <a href={addressOf('runs')}>All runs</a>
        </p>
      </main>
    );
  }
  if (!found.value) return <main class="hint">reading the experiment…</main>;
  return <Shown live={live} experiment={found.value} id={id} runs={runs} />;
}

// In the order in which they were made; live, whatever was read first.
function runsOf(live: Live, experiment: string): RunJson[] {
  return live.runs.ids.value
    .filter((run) => live.runs.peek(run)?.experiment === experiment)
    .reverse()
    .flatMap((run) => live.runs.get(run) ?? []);
}

async function read(live: Live, id: string): Promise<ExperimentJson> {
  const mark = live.runs.mark();
  const path = `/experiments/${encodeURIComponent(id)}`;
  const [experiment] = await Promise.all([
    live.client.call<ExperimentJson>('GET', path),
    readPresets(live),
  ]);
  live.runs.takeList(experiment.runs ?? [], mark);
  return experiment;
}

async function readPresets(live: Live): Promise<void> {
  if (presets.peek().length > 0) return;
  presets.value = await live.client.listPresets();
}

interface ShownProps {
  live: Live;
  id: string;
  experiment: ExperimentJson;
  runs: readonly RunJson[];
}

function Shown({ live, id, experiment, runs }: ShownProps) {
  const preset = presets.value.find((one) => one.name === experiment.preset);
  const specs = runs.map((run) => run.effectiveSpec);
  const differing = differingSettings(settingNames(runs.map((run) => run.spec)), specs);
  const unfinished = runs.filter((run) => !run.endTime).length;
  const cancel = async () => {
    try {
      await live.client.call('POST', `/experiments/${encodeURIComponent(id)}:cancel`, {});
    } catch (error) {
      sayProblem('cancel', error);
    }
  };
  return (
    <main class="page experiment-page">
      <header class="head">
        <h1>{experiment.displayName || experiment.preset || `experiment ${id.slice(-6)}`}</h1>
        <span class="secondary">
          {formatCount(runs.length)} runs
          {unfinished > 0 ? `, ${formatCount(unfinished)} not ended` : ''}
          {preset ? ` · ${preset.title}` : ''}
        </span>
        <span class="space" />
        {unfinished > 0 && live.role.value !== 'viewer' ? (
          <ConfirmButton
            label="cancel"
            question={`cancel ${formatCount(unfinished)} ${unfinished === 1 ? 'run' : 'runs'}?`}
            act={cancel}
          />
        ) : null}
        <CopyLink />
      </header>
      <PublishedTable preset={preset} runs={runs} />
      <SweepTable runs={runs} differing={differing} />
      <Comparison live={live} runs={runs} />
    </main>
  );
}
