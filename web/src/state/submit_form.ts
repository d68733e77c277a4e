// What somebody is about to submit: the settings that are given, everything else being the
// default. All of it is in the address: #/submit?from=RUN&layers=6&learning_rate=5e-4&device=cpu
//
// `from` is a run whose settings are given to begin with; what the address says is laid over them,
// and an empty value there means the default after all.
import { formatSetting } from '../format/format';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { jsonName, type Setting, sameValue, settingOf } from './settings';

/** Names in the address that are no settings. */
type OwnName =
  | 'from'
  | 'preset'
  | 'name'
  | 'device'
  | 'priority'
  | 'held'
  | 'gpus'
  | 'gpu_memory'
  | 'exclusive';

type Texts = Readonly<Record<string, string>>;

export interface Draft {
  /** The run that it is like, or ''. */
  from: string;
  /** The preset whose runs are made, or '': one run. */
  preset: string;
  name: string;
  device: string;
  priority: string;
  held: boolean;
  /** GPUs for itself, memory on each of them ("8GiB"), and no other run there; '': the server's. */
  gpus: string;
  gpuMemory: string;
  exclusive: boolean;
  /** Settings that are given, by name as declared, as text. */
  given: Texts;
}

/** Settings of a run as it was given them. */
export function givenOf(run: RunJson | undefined, settings: readonly Setting[]): Texts {
  const given: Record<string, string> = {};
  for (const { name } of settings) {
    const value = settingOf(run?.spec, name);
    if (value !== undefined) given[name] = formatSetting(value);
  }
  return given;
}

export function draftOf(
  query: Texts,
  base: Texts,
  settings: readonly Setting[],
  fromDevice = 'auto',
): Draft {
  const given: Record<string, string> = {};
  for (const { name } of settings) {
    const value = query[name] ?? base[name] ?? '';
    if (value !== '') given[name] = value;
  }
  const own = (name: OwnName) => query[name] ?? '';
  return {
    from: own('from'),
    preset: own('preset'),
    name: own('name'),
    device: query.device ?? (fromDevice === 'auto' ? '' : fromDevice),
    priority: own('priority'),
    held: own('held') === 'yes',
    gpus: own('gpus'),
    gpuMemory: own('gpu_memory'),
    exclusive: own('exclusive') === 'yes',
    given,
  };
}

/** What the address has to say for a setting to be `text`; undefined: nothing. */
export function queryValue(setting: Setting, text: string, base: Texts): string | undefined {
  const isDefault = text === '' || sameValue(setting, text, setting.default);
  const inBase = base[setting.name];
  if (inBase !== undefined && sameValue(setting, text, inBase)) return undefined;
  if (isDefault) return inBase === undefined ? undefined : '';
  return text;
}

/** Settings that are given and are not their defaults. */
export function changedSettings(draft: Draft, settings: readonly Setting[]): Setting[] {
  return settings.filter((setting) => {
    const text = draft.given[setting.name];
    return text !== undefined && !sameValue(setting, text, setting.default);
  });
}

/**
 * Whether a setting counts, given the others: what is not said is the default, or what the server
 * made of it.
 */
export function counts(
  setting: Setting,
  settings: readonly Setting[],
  textOf: (setting: Setting) => string,
): boolean {
  if (!setting.needs) return true;
  const [name, wanted = ''] = setting.needs.split('=');
  const other = settings.find((one) => one.name === name);
  if (!other) return true;
  const value = textOf(other);
  // "data=text" also stands for "text:NAME".
  return wanted.split('|').some((one) => value === one || value.startsWith(`${one}:`));
}

/** The settings as the API takes them. Numbers stay texts: the server reads them, and refuses. */
export function specOf(draft: Draft, settings: readonly Setting[]): Record<string, unknown> {
  const spec: Record<string, unknown> = {};
  for (const setting of settings) {
    const text = draft.given[setting.name];
    if (text === undefined) continue;
    const isSwitch = setting.type === 'switch' && (text === 'true' || text === 'false');
    spec[jsonName(setting.name)] = isSwitch ? text === 'true' : text;
  }
  return spec;
}

/** The body of POST /runs, or of POST /experiments for a preset. */
export function bodyOf(draft: Draft, settings: readonly Setting[]): Record<string, unknown> {
  const spec = specOf(draft, settings);
  return {
    ...(draft.preset === '' ? { spec } : { preset: draft.preset, overrides: spec }),
    ...(draft.name === '' ? {} : { displayName: draft.name }),
    ...(draft.device === '' ? {} : { device: draft.device }),
    ...(draft.priority === '' ? {} : { priority: draft.priority }),
    ...(draft.held ? { held: true } : {}),
    ...resourcesOf(draft),
  };
}

function resourcesOf({ gpus, gpuMemory, exclusive }: Draft): Record<string, unknown> {
  if (gpus === '' && gpuMemory === '' && !exclusive) return {};
  return {
    resources: {
      ...(gpus === '' ? {} : { gpus }),
      ...(gpuMemory === '' ? {} : { gpuMemoryBytes: bytesOf(gpuMemory) }),
      ...(exclusive ? { exclusive } : {}),
    },
  };
}

/** 8GiB and 500 MiB as the command line takes them; what is neither is left to the server. */
export function bytesOf(text: string): string {
  const found = /^(\d+(?:\.\d+)?) ?(KiB|MiB|GiB|TiB)$/.exec(text.trim());
  if (!found) return text;
  const power = ['', 'KiB', 'MiB', 'GiB', 'TiB'].indexOf(found[2] ?? '');
  return String(Math.round(Number(found[1]) * 1024 ** power));
}

/** The same on the command line, for a shell. */
export function commandLine(draft: Draft, settings: readonly Setting[]): string {
  const words = draft.preset === '' ? ['normlab', 'submit'] : ['normlab', 'preset', draft.preset];
  const add = (flag: string, value: string) => {
    // A value that begins with a dash would be taken for a flag.
    if (value.startsWith('-')) words.push(shellWord(`${flag}=${value}`));
    else words.push(flag, shellWord(value));
  };
  for (const { name } of settings) {
    const text = draft.given[name];
    if (text !== undefined) add(`--${name.replaceAll('_', '-')}`, text);
  }
  if (draft.name !== '') add('--name', draft.name);
  if (draft.device !== '') add('--device', draft.device);
  if (draft.priority !== '') add('--priority', draft.priority);
  if (draft.held) words.push('--hold');
  if (draft.gpus !== '') add('--gpus', draft.gpus);
  if (draft.gpuMemory !== '') add('--gpu-memory', draft.gpuMemory.replaceAll(' ', ''));
  if (draft.exclusive) words.push('--exclusive');
  return words.join(' ');
}

/** A word of a POSIX shell that is this text, whatever is in it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The name of the setting that a refused field is: spec.heads, overrides.heads; else ''. */
export function settingOfField(field: string): string {
  return /^(?:spec|overrides|runs\[\d+\]\.spec)\.(\w+)$/.exec(field)?.[1] ?? '';
}
