// What a submission has beside its settings, as fields: made from own_fields.ts.

import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { formatTime } from '../../format/format';
import type { DeviceJson } from '../../gen/normlab/v1/device_service_pb';
import type { ExperimentJson, PresetJson } from '../../gen/normlab/v1/experiment_service_pb';
import type { Live } from '../../state/live';
import { type OwnField, ownFields, ownNameOf, ownQueryValue, yes } from '../../state/own_fields';
import { choicesOf } from '../../state/preset_part';
import { setQuery } from '../../state/router';
import type { SubmitCheck } from '../../state/submit_check';
import type { Base, Draft } from '../../state/submit_form';
import { AfterField } from './after_field';
import { Field } from './field';
import { PartField } from './part_field';

interface Props {
  live: Live;
  draft: Draft;
  base: Base;
  presets: readonly PresetJson[];
  /** Names of the declared ones. */
  settings: readonly string[];
  check: SubmitCheck;
}

interface Option {
  value: string;
  text: string;
}

export function OwnFields({ live, draft, base, presets, settings, check }: Props) {
  const devices = useDevices(live);
  const hasGpus = devices.some((device) => device.kind === 'KIND_GPU');
  const asked = ownFields.some(({ name, ofGpus }) => ofGpus && draft.own[name] !== undefined);
  const preset = presets.find((one) => one.name === draft.preset);
  const possible = preset ? choicesOf(preset, settings) : [];
  const isShown = (field: OwnField) =>
    (draft.preset === '' ? !field.ofPreset : !field.ofOneRun) &&
    (!field.ofGpus || hasGpus || asked) &&
    (field.kind !== 'part' || possible.length > 0);
  const made = check.answer.value?.runs[0]?.displayName ?? '';
  const placeholders: Record<string, string> = {
    name: draft.preset || made,
    gpus: '1',
    gpu_memory: 'estimated',
  };
  const choices: Record<string, readonly Option[]> = {
    experiment: experimentChoices(live, [...live.experiments.value.values()]),
    device: asChoices(['auto', 'cpu', 'gpu', ...devices.flatMap(({ id }) => id ?? [])]),
    priority: asChoices(
      live.role.value === 'admin' ? ['high', 'normal', 'low'] : ['normal', 'low'],
    ),
  };
  return (
    <fieldset class="own">
      <legend>run</legend>
      <PresetField draft={draft} presets={presets} />
      {ownFields.filter(isShown).map((field) => {
        const text = draft.own[field.name] ?? '';
        const set = (value: string) =>
          setQuery({ [field.name]: ownQueryValue(field, value, base.own) });
        const problems = problemsOf(check, field.name);
        return (
          <Field
            key={field.name}
            id={field.name}
            label={field.label}
            help={field.help}
            problems={problems}
          >
            {field.kind === 'runs' ? (
              <AfterField live={live} id={field.name} text={text} set={set} />
            ) : field.kind === 'part' ? (
              <PartField
                id={field.name}
                preset={preset}
                possible={possible}
                text={text}
                set={set}
              />
            ) : (
              <Control
                field={field}
                text={text}
                set={set}
                choices={choices[field.name] ?? []}
                placeholder={placeholders[field.name] ?? ''}
                isWrong={problems.length > 0}
              />
            )}
          </Field>
        );
      })}
    </fieldset>
  );
}

function PresetField({ draft, presets }: { draft: Draft; presets: readonly PresetJson[] }) {
  const preset = presets.find((one) => one.name === draft.preset);
  return (
    <Field
      id="preset"
      label="what"
      help={preset?.description ?? 'one run, or a preset of several'}
      problems={[]}
    >
      <select
        id="preset"
        value={draft.preset}
        onChange={(event) => setQuery({ preset: event.currentTarget.value || undefined })}
      >
        <option value="">one run</option>
        {presets.map((one) => (
          <option key={one.name} value={one.name}>
            {one.name}: {one.title}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface ControlProps {
  field: OwnField;
  text: string;
  set: (text: string) => void;
  choices: readonly Option[];
  placeholder: string;
  isWrong: boolean;
}

function Control({ field, text, set, choices, placeholder, isWrong }: ControlProps) {
  const common = {
    id: field.name,
    'aria-describedby': `${field.name}-help`,
    'aria-invalid': isWrong,
  };
  if (field.kind === 'switch') {
    return (
      <input
        {...common}
        type="checkbox"
        checked={text === yes}
        onChange={(event) => set(event.currentTarget.checked ? yes : '')}
      />
    );
  }
  if (field.kind === 'choice') {
    const value = text || field.default;
    const isKnown = choices.some((choice) => choice.value === value);
    return (
      <select {...common} value={value} onChange={(event) => set(event.currentTarget.value)}>
        {(isKnown ? choices : [...choices, ...asChoices([value])]).map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.text}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      {...common}
      type="text"
      inputMode={field.isNumber ? 'numeric' : 'text'}
      autocomplete="off"
      value={text}
      placeholder={placeholder}
      onInput={(event) => set(event.currentTarget.value)}
    />
  );
}

// Those that the server lets this user add to, newest first.
function experimentChoices(live: Live, experiments: readonly ExperimentJson[]): Option[] {
  const own = experiments
    .filter((one) => live.role.value === 'admin' || one.user === live.user.value)
    .map((one) => ({
      value: one.id ?? '',
      text: `${one.displayName || one.preset} · ${formatTime(new Date(one.createTime ?? 0))}`,
    }));
  return [{ value: '', text: 'none' }, ...own];
}

function asChoices(values: readonly string[]): Option[] {
  return [...new Set(values)].map((value) => ({ value, text: value }));
}

// A preset is refused once for each of its runs.
function problemsOf(check: SubmitCheck, name: string): readonly string[] {
  const those = (check.answer.value?.problems ?? []).filter(
    ({ field }) => ownNameOf(field) === name,
  );
  return [...new Set(those.map(({ description }) => description))];
}

function useDevices(live: Live): readonly DeviceJson[] {
  const devices = useMemo(() => signal<readonly DeviceJson[]>([]), []);
  useEffect(() => {
    live.client.listDevices().then(
      (list) => {
        devices.value = list;
      },
      () => undefined, // auto, cpu and gpu can be chosen without the list
    );
  }, [live, devices]);
  return devices.value;
}
