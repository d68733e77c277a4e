// What a submission says beside the settings of its runs: each field declared once, for the form, the
// address, the request, the server's refusals and the command line.
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { bytesOf, bytesText } from './byte_size';
import { dependenciesOf, dependencyText, parseDependencies } from './dependencies';
import { jsonName } from './settings';

type Texts = Readonly<Record<string, string>>;

export interface OwnField {
  /** In the address, and of its control. */
  name: string;
  label: string;
  help: string;
  kind: 'text' | 'choice' | 'switch' | 'runs' | 'part';
  /** As the API declares it; what it refuses begins so. */
  field: string;
  /** What stands for nothing said, as people would choose it. */
  default: string;
  /** On the command line. */
  flag: string;
  /** Only a run has it, not a preset. */
  ofOneRun?: boolean;
  /** Only a preset has it. */
  ofPreset?: boolean;
  /** Shown where there are GPUs, or where it is given. */
  ofGpus?: boolean;
  /** Typed as a number. */
  isNumber?: boolean;
  /** What the API is sent for its text; the text itself without this. */
  value?: (text: string) => unknown;
  /** What stands behind its flag, each with a flag of its own; the text itself without this. */
  words?: (text: string) => readonly string[];
  /** What a run was given, for another one like it; '' for nothing. Without this it begins anew. */
  of?: (run: RunJson) => string;
}

/** Whether somebody said it is kept as this text. */
export const yes = 'yes';

export const ownFields: readonly OwnField[] = [
  {
    name: 'name',
    label: 'name',
    help: 'for people; made from the settings when empty',
    kind: 'text',
    field: 'display_name',
    default: '',
    flag: '--name',
  },
  {
    name: 'only',
    label: 'of it',
    help: 'which of its runs',
    kind: 'part',
    field: 'runs',
    default: '',
    flag: '--only',
    ofPreset: true,
    words: (text) => text.split(';'),
  },
  {
    name: 'experiment',
    label: 'experiment',
    help: 'whose runs it joins',
    kind: 'choice',
    field: 'experiment',
    default: '',
    flag: '--experiment',
    ofOneRun: true,
    of: (run) => run.experiment ?? '',
  },
  {
    name: 'device',
    label: 'device',
    help: 'where it may run',
    kind: 'choice',
    field: 'device',
    default: 'auto',
    flag: '--device',
    of: (run) => run.device ?? '',
  },
  {
    name: 'priority',
    label: 'class',
    help: 'in the queue',
    kind: 'choice',
    field: 'priority',
    default: 'normal',
    flag: '--priority',
    of: (run) => run.priority ?? '',
  },
  {
    name: 'after',
    label: 'after',
    help: 'runs that must have succeeded, or ended, before it starts; cancelled when one that must succeed does not',
    kind: 'runs',
    field: 'after',
    default: '',
    flag: '--after',
    value: parseDependencies,
    words: (text) => parseDependencies(text).map(dependencyText),
    of: (run) => dependenciesOf(run.after ?? []),
  },
  {
    name: 'gpus',
    label: 'GPUs',
    help: 'for itself; the engine trains on the first one',
    kind: 'text',
    field: 'resources.gpus',
    default: '',
    flag: '--gpus',
    ofGpus: true,
    isNumber: true,
    of: (run) => (run.resources?.gpus ? String(run.resources.gpus) : ''),
  },
  {
    name: 'gpu_memory',
    label: 'GPU memory',
    help: 'on each GPU, such as 8GiB; it cannot get more. Estimated from the settings when empty',
    kind: 'text',
    field: 'resources.gpu_memory_bytes',
    default: '',
    flag: '--gpu-memory',
    ofGpus: true,
    value: bytesOf,
    words: (text) => [text.replaceAll(' ', '')],
    of: (run) => bytesText(Number(run.resources?.gpuMemoryBytes ?? 0)),
  },
  {
    name: 'exclusive',
    label: 'alone',
    help: 'no other run shares its GPU',
    kind: 'switch',
    field: 'resources.exclusive',
    default: '',
    flag: '--exclusive',
    ofGpus: true,
    of: (run) => (run.resources?.exclusive ? yes : ''),
  },
  {
    name: 'held',
    label: 'hold',
    help: 'stays in the queue until it is released',
    kind: 'switch',
    field: 'held',
    default: '',
    flag: '--hold',
  },
];

/**
 * What a run like `run` begins with. Whoever may not: a member joins no experiment of somebody else,
 * and gives no class that only admins give.
 */
export function ownOf(run: RunJson | undefined, user: string, role: string): Texts {
  if (!run) return {};
  const isOthers = run.user !== user && role !== 'admin';
  const given: Record<string, string> = {};
  for (const field of ownFields) {
    const text = field.of?.(run) ?? '';
    const mayNot =
      (field.name === 'experiment' && isOthers) || (text === 'high' && role !== 'admin');
    if (text !== '' && text !== field.default && !mayNot) given[field.name] = text;
  }
  return given;
}

/** What is said: by the address, else by the run that it is like; without what only a preset, or only a run, has. */
export function ownDraft(query: Texts, base: Texts, isPreset: boolean): Texts {
  const said: Record<string, string> = {};
  for (const { name, kind, ofOneRun, ofPreset, default: usual } of ownFields) {
    const text = query[name] ?? base[name] ?? '';
    if (text === '' || text === usual || (isPreset ? ofOneRun : ofPreset)) continue;
    if (kind !== 'switch' || text === yes) said[name] = text;
  }
  return said;
}

/** What the address has to say for a field to be `text`; undefined: nothing. */
export function ownQueryValue(field: OwnField, text: string, base: Texts): string | undefined {
  const inBase = base[field.name] ?? '';
  const wanted = text === field.default ? '' : text;
  return wanted === inBase ? undefined : wanted;
}

/** The part of a request's body that they are: { device: "gpu", resources: { gpus: "2" } }. */
export function ownBody(said: Texts): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const { name, kind, field, value } of ownFields) {
    const text = said[name];
    if (text === undefined || kind === 'part') continue; // who knows the preset says its runs
    const [last = '', ...outer] = field.split('.').map(jsonName).reverse();
    let at = body;
    for (const step of outer.reverse()) {
      at[step] ??= {};
      at = at[step] as Record<string, unknown>;
    }
    at[last] = kind === 'switch' ? true : value ? value(text) : text;
  }
  return body;
}

/** Flags and what stands behind them, in order; '' behind a flag that stands alone. */
export function ownFlags(said: Texts): [string, string][] {
  return ownFields.flatMap(({ name, kind, flag, words }): [string, string][] => {
    const text = said[name];
    if (text === undefined) return [];
    if (kind === 'switch') return [[flag, '']];
    return (words?.(text) ?? [text]).map((word) => [flag, word]);
  });
}

/** The name of the field that was refused: runs[0].after[1].run is `after`; '' when it is none. */
export function ownNameOf(refused: string): string {
  const path = refused.replace(/^(?:experiment\.)?(?:runs\[\d+\]\.)?/, '');
  const found = ownFields.find(
    ({ field }) => path === field || path.startsWith(`${field}[`) || field.startsWith(`${path}.`),
  );
  return found?.name ?? '';
}
