// Numbers about a run, its settings beside the defaults, and its attempts.
import { useEffect } from 'preact/hooks';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatLarge,
  formatValue,
} from '../../format/format';
import { settingRows } from '../../format/settings';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import { abandonedParts } from '../../state/lineage';
import type { Live } from '../../state/live';
import { resourcesText } from '../../state/queue_text';
import { address, setQuery } from '../../state/router';
import { addressOf } from '../../state/url_state';
import { TimeText } from '../shared/quantity';
import { StateLabel } from '../shared/state_label';

/** Name, text, unit of what is known. */
function factsOf(run: RunJson): [string, string, string][] {
  const summary = run.summary ?? {};
  const number = (value: unknown) => (value === undefined ? undefined : Number(value));
  const rows: [string, string | undefined, string][] = [
    ['device', run.attempts?.at(-1)?.device ?? (run.device && `wants ${run.device}`), ''],
    ['parameters', counted(number(summary.parameterCount)), 'trained numbers'],
    ['arithmetic', larger(number(summary.flopsPerStep)), 'FLOP a step; multiply and add are two'],
    ['memory', sized(number(summary.memoryBytes)), 'estimated from the settings'],
    ['speed', speed(run.progress?.stepsPerSecond), 'over the latest steps'],
    ['final loss', valued(number(summary.finalLoss)), 'nats per token'],
    ['lowest loss', valued(number(summary.minLoss)), 'nats per token'],
    ['largest gradient norm', valued(number(summary.maxGradientNorm)), 'before clipping'],
    ['validation loss', valued(number(summary.validationLoss)), 'nats per token'],
    ['trained for', spent(run.runSeconds), 'waiting and pauses do not count'],
    [
      'instructions',
      summary.instructionSet || undefined,
      'the same bits are promised within one set',
    ],
    ['class', run.priority === 'normal' ? '' : run.priority, 'in the queue'],
    ['asks for', resourcesText(run.resources), 'of each GPU'],
    ['submitted by', run.user, ''],
    ['labels', run.labels?.join(', ') || undefined, ''],
  ];
  return rows.filter(
    (row): row is [string, string, string] => row[1] !== undefined && row[1] !== '',
  );
}

const counted = (value?: number) => (value ? formatCount(value) : undefined);
const larger = (value?: number) => (value ? `${formatLarge(value)}FLOP a step` : undefined);
const sized = (value?: number) => (value ? formatBytes(value) : undefined);
const valued = (value?: number) => (value === undefined ? undefined : formatValue(value));
const spent = (value: unknown) =>
  Number(value ?? 0) > 0 ? formatDuration(Number(value)) : undefined;
const speed = (value: unknown) =>
  Number(value ?? 0) > 0 ? `${formatValue(Number(value))} steps a second` : undefined;

export function Facts({ live, run }: { live: Live; run: RunJson }) {
  return (
    <dl class="facts">
      {factsOf(run).map(([name, text, unit]) => (
        <div key={name} title={unit}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
      <div>
        <dt>submitted</dt>
        <dd>
          <TimeText time={run.createTime} />
        </dd>
      </div>
      {(run.after ?? []).map((one) => (
        <AfterFact key={one.run} live={live} id={one.run ?? ''} condition={one.condition} />
      ))}
      {run.notes ? (
        <div class="notes">
          <dt>notes</dt>
          <dd>{run.notes}</dd>
        </div>
      ) : null}
    </dl>
  );
}

interface AfterProps {
  live: Live;
  id: string;
  condition: string | undefined;
}

function AfterFact({ live, id, condition }: AfterProps) {
  useEffect(() => live.needRun(id), [live, id]);
  const other = live.runs.get(id);
  return (
    <div title="what must have come before it starts">
      <dt>starts after</dt>
      <dd>
        {condition === 'any' ? 'the end of ' : 'the success of '}
        <a href={addressOf('run', id)}>{other?.displayName ?? id}</a>{' '}
        {other ? <StateLabel state={other.state} /> : null}
      </dd>
    </div>
  );
}

export function Settings({ live, run }: { live: Live; run: RunJson }) {
  useEffect(() => live.needSettings(), [live]);
  const showAll = address.value.query.settings === 'all';
  const rows = settingRows(live.settings.value, run.spec, run.effectiveSpec);
  const differing = rows.filter(({ differs }) => differs);
  const shown = showAll ? rows.filter(({ value }) => value !== '') : differing;
  return (
    <>
      <p class="secondary">
        {differing.length === 0
          ? 'all as the defaults'
          : `${formatCount(differing.length)} ${differing.length === 1 ? 'differs' : 'differ'} from the defaults`}{' '}
        <button type="button" onClick={() => setQuery({ settings: showAll ? undefined : 'all' })}>
          {showAll ? 'show what differs' : 'show all'}
        </button>
      </p>
      {shown.length > 0 ? (
        <table class="settings">
          <thead>
            <tr>
              <th scope="col">setting</th>
              <th scope="col">value</th>
              <th scope="col">default</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.name} class={row.differs ? 'differs' : ''} title={row.help}>
                <th scope="row">{row.name}</th>
                <td title={row.unit}>{row.value}</td>
                <td class="secondary">{row.defaultText}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}

export function Attempts({ run }: { run: RunJson }) {
  const attempts = [...(run.attempts ?? [])].sort((a, b) => (a.number ?? 0) - (b.number ?? 0));
  const left = new Map(abandonedParts(attempts).map(({ attempt, from }) => [attempt, from]));
  if (attempts.length === 0) return <p class="secondary">none has started</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways where there is little room
    <section class="attempts" aria-label="attempts" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              attempt
            </th>
            <th scope="col">device</th>
            <th scope="col">went on from</th>
            <th scope="col" class="number">
              last step
            </th>
            <th
              scope="col"
              title="Steps that are no part of the curve; the charts have them faintly"
            >
              left behind
            </th>
            <th scope="col">started</th>
            <th scope="col">ran for</th>
            <th scope="col" class="wide">
              how it ended
            </th>
          </tr>
        </thead>
        <tbody>
          {attempts.map((attempt) => (
            <tr key={attempt.number}>
              <th scope="row" class="number">
                {attempt.number}
              </th>
              <td>{attempt.device}</td>
              <td>{originText(attempt.resumedFromStep, attempt.resumedFromAttempt)}</td>
              <td class="number">{formatCount(Number(attempt.lastStep ?? 0))}</td>
              <td>{leftText(left.get(attempt.number ?? 0), attempt.lastStep)}</td>
              <td>
                <TimeText time={attempt.startTime} />
              </td>
              <td>{spent(attempt.runSeconds) ?? ''}</td>
              <td class="wide" title={attempt.endReason}>
                {attempt.endReason}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function leftText(from: number | undefined, last: unknown): string {
  return from === undefined ? '' : `steps ${formatCount(from)} to ${formatCount(Number(last))}`;
}

function originText(step: unknown, attempt: number | undefined): string {
  const from = Number(step ?? 0);
  return from > 0 ? `step ${formatCount(from)} of attempt ${attempt ?? '?'}` : 'the beginning';
}
