// What somebody is about to submit: the settings that are given, everything else being the
// default. All of it is in the address: #/submit?from=RUN&layers=6&learning_rate=5e-4&device=cpu
//
// `from` is a run whose settings, and what else it was given, are there to begin with; what the address
// says is laid over them, and an empty value there means the default after all.
import { formatSetting } from '../format/format';
import type { PresetJson } from '../gen/normlab/v1/experiment_service_pb';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { ownBody, ownDraft, ownFlags } from './own_fields';
import { runsOfPart } from './preset_part';
import { jsonName, type Setting, sameValue, settingOf } from './settings';

type Texts = Readonly<Record<string, string>>;

export interface Draft {
  /** The run that it is like, or ''. */
  from: string;
  /** The preset whose runs are made, or '': one run. */
  preset: string;
  /** What is said beside settings, by name as in own_fields.ts; nothing is there that is not said. */
  own: Texts;
  /** Settings that are given, by name as declared, as text. */
  given: Texts;
}

/** What a draft begins with: the settings of the run that it is like, and what else it was given. */
export interface Base {
  given: Texts;
  own: Texts;
}

export const noBase: Base = { given: {}, own: {} };

/** Settings of a run as it was given them. */
export function givenOf(run: RunJson | undefined, settings: readonly Setting[]): Texts {
  const given: Record<string, string> = {};
  for (const { name } of settings) {
    const value = settingOf(run?.spec, name);
    if (value !== undefined) given[name] = formatSetting(value);
  }
  return given;
}

export function draftOf(query: Texts, base: Base, settings: readonly Setting[]): Draft {
  const given: Record<string, string> = {};
  for (const { name } of settings) {
    const value = query[name] ?? base.given[name] ?? '';
    if (value !== '') given[name] = value;
  }
  const preset = query.preset ?? '';
  const own = ownDraft(query, base.own, preset !== '');
  return { from: query.from ?? '', preset, own, given };
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

/** The body of POST /runs, or of POST /experiments for a preset, which is one of `presets`. */
export function bodyOf(
  draft: Draft,
  settings: readonly Setting[],
  presets: readonly PresetJson[] = [],
): Record<string, unknown> {
  const spec = specOf(draft, settings);
  return {
    ...(draft.preset === '' ? { spec } : { preset: draft.preset, overrides: spec }),
    ...ownBody(draft.own),
    ...partOf(draft, presets),
  };
}

function partOf({ preset: name, own }: Draft, presets: readonly PresetJson[]) {
  const preset = presets.find((one) => one.name === name);
  if (!preset || own.only === undefined) return {};
  return { runs: runsOfPart(preset, own.only).map(({ displayName }) => ({ displayName })) };
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
  for (const [flag, word] of ownFlags(draft.own)) {
    if (word === '') words.push(flag);
    else add(flag, word);
  }
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
