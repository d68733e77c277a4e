// What would be submitted: how large it is, what differs from the defaults, and how the command line
// says it.
import { formatBytes, formatCount, formatLarge } from '../../format/format';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import { ownNameOf } from '../../state/own_fields';
import type { Setting } from '../../state/settings';
import type { SubmitCheck } from '../../state/submit_check';
import { changedSettings, commandLine, type Draft, settingOfField } from '../../state/submit_form';
import { say, sayProblem } from '../shared/said';

interface Props {
  draft: Draft;
  settings: readonly Setting[];
  check: SubmitCheck;
  isSubmitting: boolean;
}

export function Summary({ draft, settings, check, isSubmitting }: Props) {
  const answer = check.answer.value;
  const runs = answer?.runs ?? [];
  const isFine = check.isCurrent.value && runs.length > 0;
  const count = runs.length > 1 ? `${formatCount(runs.length)} runs` : 'run';
  return (
    <aside class="summary" aria-label="What would be submitted">
      <Size runs={runs} />
      <Wrong check={check} />
      <Changed draft={draft} settings={settings} />
      <CommandLine text={commandLine(draft, settings)} />
      <button type="submit" class="primary" disabled={!isFine || isSubmitting}>
        submit {count}
      </button>
      <p class="secondary checking">{check.isCurrent.value ? '' : 'asking the server…'}</p>
    </aside>
  );
}

function Size({ runs }: { runs: readonly RunJson[] }) {
  const numbers = (value: (run: RunJson) => number) => {
    const all = runs.map(value).filter((number) => number > 0);
    return all.length > 0 ? { least: Math.min(...all), most: Math.max(...all) } : undefined;
  };
  const rows = [
    {
      name: 'parameters',
      unit: 'trained numbers in the model',
      span: numbers((run) => Number(run.summary?.parameterCount ?? 0)),
      format: formatCount,
    },
    {
      name: 'memory',
      unit: 'that training needs, estimated',
      span: numbers((run) => Number(run.summary?.memoryBytes ?? 0)),
      format: formatBytes,
    },
    {
      name: 'a step',
      unit: 'arithmetic of one step, multiply and add counted as two',
      span: numbers((run) => Number(run.summary?.flopsPerStep ?? 0)),
      format: (flops: number) => `${formatLarge(flops)}FLOP`,
    },
    {
      name: 'steps',
      unit: 'optimiser steps',
      span: numbers((run) => Number(run.effectiveSpec?.steps ?? 0)),
      format: formatCount,
    },
  ];
  return (
    <dl class="size">
      {rows.map(({ name, unit, span, format }) => (
        <div key={name} title={unit}>
          <dt>{name}</dt>
          <dd>
            {span === undefined
              ? '–'
              : span.least === span.most
                ? format(span.most)
                : `${format(span.least)} to ${format(span.most)}`}
          </dd>
        </div>
      ))}
    </dl>
  );
}

// All that is wrong, in one place; what belongs to a field stands there as well.
function Wrong({ check }: { check: SubmitCheck }) {
  const answer = check.answer.value;
  const nameOf = (field: string) => settingOfField(field) || ownNameOf(field) || field;
  const all = [
    ...(answer?.problem ? [answer.problem] : []),
    ...(answer?.problems ?? []).map(({ field, description }) => `${nameOf(field)}: ${description}`),
  ];
  const lines = [...new Set(all)]; // a preset is refused once for each of its runs
  if (lines.length === 0) return null;
  return (
    <div class="wrong-list" role="status">
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </div>
  );
}

function Changed({ draft, settings }: { draft: Draft; settings: readonly Setting[] }) {
  const changed = changedSettings(draft, settings);
  if (changed.length === 0) return <p class="secondary">Every setting is its default.</p>;
  return (
    <dl class="changes">
      {changed.map((setting) => (
        <div key={setting.name}>
          <dt>{setting.name}</dt>
          <dd>
            <b>{draft.given[setting.name]}</b>{' '}
            <span class="secondary">instead of {setting.default}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function CommandLine({ text }: { text: string }) {
  const copy = () => {
    const copying = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error());
    copying.then(
      () => say('copied'),
      () => sayProblem('copy', 'the browser does not let this page copy; mark the text'),
    );
  };
  return (
    <div class="command">
      <span class="secondary">on the command line</span>
      <button type="button" onClick={copy}>
        copy
      </button>
      <pre>{text}</pre>
    </div>
  );
}
