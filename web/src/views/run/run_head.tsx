// Who the run is, how it is doing, and what can be done with it.
import { formatCount } from '../../format/format';
import { noteText, progressText, timesText } from '../../format/run_text';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import { addressOf } from '../../state/url_state';
import { heldStep } from '../runs/run_cells';
import { CopyLink } from '../shared/copy_link';
import { Menu } from '../shared/menu';
import { IdText } from '../shared/quantity';
import { RunActionsBar } from '../shared/run_actions_bar';
import { StateLabel } from '../shared/state_label';
import { exportRun } from './export_run';

export function RunHead({ live, run }: { live: Live; run: RunJson }) {
  const id = run.id ?? '';
  const nameOf = (other: string) => live.runs.peek(other)?.displayName;
  const experiment = run.experiment ? live.experiments.value.get(run.experiment) : undefined;
  return (
    <header class="head">
      <h1 title={run.displayName}>{run.displayName}</h1>
      <IdText id={id} />
      <StateLabel state={run.state} />
      <span class="number-text">{progressText(run, heldStep(live, id))}</span>
      <span class="reason secondary" title={timesText(run, nameOf)}>
        {noteText(run, nameOf)}
      </span>
      {run.experiment ? (
        <a href={addressOf('experiment', run.experiment)}>
          {experiment?.displayName || experiment?.preset || 'experiment'}
        </a>
      ) : null}
      <span class="space" />
      <BadStep run={run} />
      <RunActionsBar live={live} ids={[id]} />
      <a class="button" href={addressOf('submit', '', { from: id })}>
        same but…
      </a>
      <Menu label="export ▾" title="export this run">
        {(close) => (
          <button
            type="button"
            onClick={() => {
              close();
              exportRun(live, run);
            }}
          >
            CSV of all points
          </button>
        )}
      </Menu>
      <CopyLink />
    </header>
  );
}

function BadStep({ run }: { run: RunJson }) {
  const step = Number(run.summary?.firstBadStep ?? 0);
  if (step === 0) return null;
  return (
    <span class="bad-step" title="first step whose loss or gradient norm is not finite">
      ⚡{'\uFE0E'} step {formatCount(step)}
    </span>
  );
}
