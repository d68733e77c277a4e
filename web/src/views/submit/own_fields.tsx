// What a run has beside its settings: name, preset, device, class, and whether it is held.

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { DeviceJson } from '../../gen/normlab/v1/device_service_pb';
import type { PresetJson } from '../../gen/normlab/v1/experiment_service_pb';
import type { Live } from '../../state/live';
import { setQuery } from '../../state/router';
import type { SubmitCheck } from '../../state/submit_check';
import type { Draft } from '../../state/submit_form';

interface Props {
  live: Live;
  draft: Draft;
  presets: readonly PresetJson[];
  check: SubmitCheck;
}

export function OwnFields({ live, draft, presets, check }: Props) {
  const devices = useDevices(live);
  const isAsked = draft.gpus !== '' || draft.gpuMemory !== '' || draft.exclusive;
  const hasGpus = isAsked || devices.some((device) => device.kind === 'KIND_GPU');
  const preset = presets.find((one) => one.name === draft.preset);
  const made = check.answer.value?.runs[0]?.displayName ?? '';
  const problemOf = (field: string) =>
    check.answer.value?.problems.find((one) => one.field === field)?.description ?? '';
  const classes = live.role.value === 'admin' ? ['high', 'normal', 'low'] : ['normal', 'low'];
  return (
    <fieldset class="own">
      <legend>run</legend>
      <Field
        id="preset"
        label="what"
        help={preset?.description ?? 'one run, or a preset of several'}
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
      <Field
        id="name"
        label="name"
        help="for people; made from the settings when empty"
        problem={problemOf('display_name')}
      >
        <input
          id="name"
          type="text"
          autocomplete="off"
          value={draft.name}
          placeholder={draft.preset || made}
          onInput={(event) => setQuery({ name: event.currentTarget.value || undefined })}
        />
      </Field>
      <Field id="device" label="device" help="where it may run" problem={problemOf('device')}>
        <select
          id="device"
          value={draft.device || 'auto'}
          onChange={(event) => setQuery({ device: event.currentTarget.value })}
        >
          {[...new Set(['auto', 'cpu', 'gpu', ...idsOf(devices), draft.device || 'auto'])].map(
            (id) => (
              <option key={id} value={id}>
                {id}
              </option>
            ),
          )}
        </select>
      </Field>
      <Field id="priority" label="class" help="in the queue" problem={problemOf('priority')}>
        <select
          id="priority"
          value={draft.priority || 'normal'}
          onChange={(event) => {
            const value = event.currentTarget.value;
            setQuery({ priority: value === 'normal' ? undefined : value });
          }}
        >
          {[...new Set([...classes, draft.priority || 'normal'])].map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      {hasGpus ? <GpuFields draft={draft} problemOf={problemOf} /> : null}
      <Field id="held" label="hold" help="stays in the queue until it is released">
        <input
          id="held"
          type="checkbox"
          checked={draft.held}
          onChange={() => setQuery({ held: draft.held ? undefined : 'yes' })}
        />
      </Field>
    </fieldset>
  );
}

interface GpuProps {
  draft: Draft;
  problemOf: (field: string) => string;
}

function GpuFields({ draft, problemOf }: GpuProps) {
  return (
    <>
      <Field
        id="gpus"
        label="GPUs"
        help="for itself; the engine trains on the first one"
        problem={problemOf('resources.gpus') || problemOf('resources')}
      >
        <input
          id="gpus"
          type="text"
          inputMode="numeric"
          autocomplete="off"
          value={draft.gpus}
          placeholder="1"
          onInput={(event) => setQuery({ gpus: event.currentTarget.value || undefined })}
        />
      </Field>
      <Field
        id="gpu_memory"
        label="GPU memory"
        help="on each GPU, such as 8GiB; it cannot get more. Estimated from the settings when empty"
        problem={problemOf('resources.gpu_memory_bytes')}
      >
        <input
          id="gpu_memory"
          type="text"
          autocomplete="off"
          value={draft.gpuMemory}
          placeholder="estimated"
          onInput={(event) => setQuery({ gpu_memory: event.currentTarget.value || undefined })}
        />
      </Field>
      <Field id="exclusive" label="alone" help="no other run shares its GPU">
        <input
          id="exclusive"
          type="checkbox"
          checked={draft.exclusive}
          onChange={() => setQuery({ exclusive: draft.exclusive ? undefined : 'yes' })}
        />
      </Field>
    </>
  );
}

interface FieldProps {
  id: string;
  label: string;
  help: string;
  problem?: string;
  children: ComponentChildren;
}

function Field({ id, label, help, problem = '', children }: FieldProps) {
  return (
    <div class={`field${problem ? ' wrong' : ''}`}>
      <label for={id}>{label}</label>
      {children}
      <p class="help">{help}</p>
      {problem ? (
        <p class="problem" role="alert">
          {problem}
        </p>
      ) : null}
    </div>
  );
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

function idsOf(devices: readonly DeviceJson[]): string[] {
  return devices.flatMap((device) => device.id ?? []);
}
