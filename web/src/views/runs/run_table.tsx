// The run table: also the legend of the charts.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formatCount } from '../../format/format';
import { stateLook } from '../../format/state';
import type { Live } from '../../state/live';
import type { Group } from '../../state/run_list';
import { cursorStep, selected, toggle } from '../../state/selection';
import { RunRow } from './run_row';

const closed = signal<ReadonlySet<string>>(new Set());

export function RunTable({ live }: { live: Live }) {
  return (
    <div class="table">
      <table>
        <caption class="hidden">Runs, newest first</caption>
        <thead>
          <tr>
            <th scope="col" class="pick">
              <span class="hidden">drawn</span>
            </th>
            <th scope="col" class="state-column">
              state
            </th>
            <th scope="col" class="name">
              name
            </th>
            <th scope="col" class="placement">
              placement
            </th>
            <th scope="col" class="number layers">
              layers
            </th>
            <th scope="col" class="number rate" title="learning rate, the full one after warmup">
              lr
            </th>
            <th scope="col" class="step" title="steps stored, of the steps in the run">
              step
            </th>
            <ValueHeads />
            <th scope="col" class="note-column">
              note
            </th>
            <th scope="col" class="who">
              who
            </th>
          </tr>
        </thead>
        {live.groups.value.map((group) => (
          <GroupRows key={group.experiment ?? group.runs[0]} live={live} group={group} />
        ))}
      </table>
      {live.totalRuns.value > 0 ? (
        <p class="more secondary">
          {formatCount(live.runs.ids.value.length)} of {formatCount(live.totalRuns.value)} runs{' '}
          <button type="button" onClick={() => live.showMore()}>
            show more
          </button>
        </p>
      ) : null}
    </div>
  );
}

// Apart from the table, because it changes with every move of the cursor.
function ValueHeads() {
  const step = cursorStep.value;
  const at = step === undefined ? '' : ` @ ${formatCount(step)}`;
  return (
    <>
      <th scope="col" class="number value" title="nats per token">
        loss{at}
      </th>
      <th scope="col" class="number value" title="L2 norm over all parameters, before clipping">
        grad norm{at}
      </th>
    </>
  );
}

function GroupRows({ live, group }: { live: Live; group: Group }) {
  const experiment = group.experiment;
  if (experiment === undefined) {
    return (
      <tbody>
        {group.runs.map((run) => (
          <RunRow key={run} live={live} id={run} inGroup={false} />
        ))}
      </tbody>
    );
  }
  const isClosed = closed.value.has(experiment);
  return (
    <tbody>
      <GroupHead live={live} experiment={experiment} runs={group.runs} isClosed={isClosed} />
      {isClosed
        ? null
        : group.runs.map((run) => <RunRow key={run} live={live} id={run} inGroup={true} />)}
    </tbody>
  );
}

const otherColumns = ['placement', 'layers', 'rate', 'step', 'loss', 'norm', 'note-column', 'who'];

interface HeadProps {
  live: Live;
  experiment: string;
  runs: readonly string[];
  isClosed: boolean;
}

function GroupHead({ live, experiment, runs, isClosed }: HeadProps) {
  const box = useRef<HTMLInputElement>(null);
  const count = runs.filter((run) => selected.value.includes(run)).length;
  const some = count > 0 && count < runs.length;
  useEffect(() => {
    if (box.current) box.current.indeterminate = some;
  }, [some]);
  const known = live.experiments.value.get(experiment);
  const name = known?.displayName || known?.preset || experiment.slice(-6);
  const fold = () => {
    const next = new Set(closed.value);
    if (!next.delete(experiment)) next.add(experiment);
    closed.value = next;
  };
  return (
    <tr class="group">
      <td class="pick">
        <input
          ref={box}
          type="checkbox"
          checked={count === runs.length}
          onChange={() => toggle(runs)}
          aria-label={`draw all runs of ${name}`}
        />
      </td>
      {/* The other columns one by one, since narrow windows hide some; the text may run into them. */}
      <th scope="rowgroup" colSpan={2}>
        <button type="button" class="fold" aria-expanded={!isClosed} onClick={fold}>
          <span aria-hidden="true">{isClosed ? '▸' : '▾'}</span> {name}
        </button>{' '}
        <span class="secondary">{summary(live, runs)}</span>
      </th>
      {otherColumns.map((name) => (
        <td key={name} class={name} />
      ))}
    </tr>
  );
}

// 3 runs: 2 running, 1 queued
function summary(live: Live, runs: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const run of runs) {
    const { word } = stateLook(live.runs.get(run)?.state);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const parts = [...counts].map(([word, count]) => `${formatCount(count)} ${word}`);
  return `${formatCount(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}: ${parts.join(', ')}`;
}
