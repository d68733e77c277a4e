// A part of a preset's runs, chosen by values of the settings in which they differ, as an address says
// it: "layers=1,2;seed=1". The command line has an --only for each of them.
import { formatSetting } from '../format/format';
import type { PresetJson, PresetRunJson } from '../gen/normlab/v1/experiment_service_pb';
import { settingOf } from './settings';

/** A setting, and the values of it that are wanted, as text. */
export interface Choice {
  setting: string;
  values: readonly string[];
}

export function parsePart(text: string): Choice[] {
  return text.split(';').flatMap((one) => {
    const found = /^([a-z0-9_]+)=(.*)$/.exec(one.trim());
    if (!found) return [];
    const [, setting = '', values = ''] = found;
    return [{ setting, values: values.split(',').filter((value) => value !== '') }];
  });
}

export function partText(choices: readonly Choice[]): string {
  return choices.map(({ setting, values }) => `${setting}=${values.join()}`).join(';');
}

/** What can be chosen by: settings that every run of the preset gives and that differ. */
export function choicesOf(preset: PresetJson, settings: readonly string[]): Choice[] {
  const runs = preset.runs ?? [];
  return settings.flatMap((setting) => {
    const values = [...new Set(runs.map((run) => valueIn(run, setting)))];
    return values.length > 1 && !values.includes('') ? [{ setting, values }] : [];
  });
}

/** The runs that a part has: those that have one of the values of every setting in it. */
export function runsOfPart(preset: PresetJson, text: string): PresetRunJson[] {
  const choices = parsePart(text);
  return (preset.runs ?? []).filter((run) =>
    choices.every(({ setting, values }) => values.includes(valueIn(run, setting))),
  );
}

/** The part after one value of one setting was taken in or out; '' for all of the preset. */
export function togglePart(
  text: string,
  possible: readonly Choice[],
  setting: string,
  value: string,
): string {
  const chosen = parsePart(text);
  const next = possible.flatMap((one) => {
    const now = chosen.find((other) => other.setting === one.setting)?.values ?? one.values;
    const isOn = now.includes(value);
    const wanted = one.values.filter((other) =>
      one.setting === setting && other === value ? !isOn : now.includes(other),
    );
    return wanted.length === one.values.length ? [] : [{ setting: one.setting, values: wanted }];
  });
  return partText(next);
}

function valueIn(run: PresetRunJson, setting: string): string {
  const value = settingOf(run.spec, setting);
  // Whole numbers of 64 bits are texts in JSON.
  return typeof value === 'number' ? formatSetting(value) : String(value ?? '');
}
