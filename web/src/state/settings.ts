// The declared settings of runs, as GET /api/v1/settings has them, and what may be asked of them.
import type { RunSpecJson } from '../gen/normlab/v1/run_spec_pb';

/** One setting: everything that help, a form and a check by the page need. */
export interface Setting {
  /** As declared: learning_rate. */
  name: string;
  type: 'text' | 'integer' | 'number' | 'switch';
  /** Heading under which it stands. */
  group: string;
  help: string;
  /** As text; "auto": it follows from others, and autoHelp says how. */
  default: string;
  autoHelp?: string;
  choices?: string[];
  /** Besides the choices, any text that begins so. */
  choicePrefix?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  unit?: string;
  /** It counts only where another setting has one of these values: "schedule=cosine|linear". */
  needs?: string;
}

export type SettingValue = string | number | boolean;
export type SettingValues = Readonly<Record<string, SettingValue | undefined>>;

/** learning_rate in JSON is learningRate. */
export function jsonName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The value of a setting in settings as JSON has them; whole numbers are texts there. */
export function settingOf(spec: RunSpecJson | undefined, name: string): SettingValue | undefined {
  return (spec as SettingValues | undefined)?.[jsonName(name)];
}

/** The same value, however it is written: 2e-3 and 0.002. */
export function sameValue(setting: Setting, one: string, other: string): boolean {
  if (one === other) return true;
  if (setting.type !== 'number' && setting.type !== 'integer') return false;
  return one.trim() !== '' && other.trim() !== '' && Number(one) === Number(other);
}
