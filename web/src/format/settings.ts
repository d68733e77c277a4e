// A run's settings beside the declared defaults (GET /api/v1/settings).
import type { RunSpecJson } from '../gen/normlab/v1/run_spec_pb';
import { jsonName, type Setting } from '../state/settings';
import { formatSetting } from './format';

export interface SettingRow {
  name: string;
  value: string;
  defaultText: string;
  /** Somebody has set it, and to something else than the default. */
  differs: boolean;
  help: string;
  unit: string;
  group: string;
}

type Values = Readonly<Record<string, unknown>>;

/** In the order of the declarations. */
export function settingRows(
  declared: readonly Setting[],
  given: RunSpecJson | undefined,
  effective: RunSpecJson | undefined,
): SettingRow[] {
  const set = (given ?? {}) as Values;
  const used = (effective ?? given ?? {}) as Values;
  return declared.map((setting) => {
    const key = jsonName(setting.name);
    const defaultText = setting.default;
    return {
      name: setting.name,
      value: settingText(used[key]),
      defaultText,
      differs: set[key] !== undefined && !sameValue(settingText(set[key]), defaultText),
      help: setting.help,
      unit: setting.unit ?? '',
      group: setting.group,
    };
  });
}

/** Settings that are not the same in all runs, each with its values in the order of the runs. */
export function differingSettings(
  names: readonly string[],
  specs: readonly (RunSpecJson | undefined)[],
): { name: string; values: string[] }[] {
  return names.flatMap((name) => {
    const key = jsonName(name);
    const values = specs.map((spec) => settingText((spec as Values | undefined)?.[key]));
    return values.every((value) => sameValue(value, values[0] as string)) ? [] : [{ name, values }];
  });
}

/**
 * Names of the settings that runs have, as declared, in the order of the first run. Of the settings as
 * somebody gave them: what was chosen; of the effective ones: also what follows from that.
 */
export function settingNames(specs: readonly (RunSpecJson | undefined)[]): string[] {
  const names = new Set<string>();
  for (const spec of specs) for (const key of Object.keys(spec ?? {})) names.add(snakeCase(key));
  return [...names];
}

/** Short enough for a cell: 0.6667 for two thirds. */
export function shortSetting(text: string): string {
  const value = Number(text);
  return text.length > 8 && Number.isFinite(value) ? String(Number(value.toPrecision(4))) : text;
}

/** Of one setting, as text; empty: it is not there. */
export function textOfSetting(spec: RunSpecJson | undefined, name: string): string {
  return settingText((spec as Values | undefined)?.[jsonName(name)]);
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

// Integers of 64 bits come as text.
function settingText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return formatSetting(value);
  return String(value);
}

// 2e-3 and 0.002 are the same.
function sameValue(a: string, b: string): boolean {
  if (a === b) return true;
  return a !== '' && b !== '' && Number(a) === Number(b);
}
