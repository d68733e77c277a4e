// The columns that the table can have: facts of a run, its numbers, and every setting. Which ones it
// has is in the address: cols=placement,layers,loss.
import {
  formatDuration,
  formatLarge,
  formatSetting,
  formatTime,
  formatValue,
} from '../format/format';
import { type NameOf, noteText } from '../format/run_text';
import type { RunJson, SummaryJson } from '../gen/normlab/v1/run_pb';
import { settingOf } from './settings';

export interface Column {
  /** In the address. */
  name: string;
  /** Its head. */
  title: string;
  /** What it is, with its unit. */
  help: string;
  /** In CSS pixels. */
  width: number;
  isNumber: boolean;
  /** The server's name for it in an order; '' where there is none. */
  order: string;
  /** '' where the run has no value. `step`, `trend`, `loss` and `gradient_norm` are drawn otherwise. */
  text: (run: RunJson, nameOf: NameOf) => string;
}

function fact(
  name: string,
  title: string,
  help: string,
  width: number,
  order: string,
  text: Column['text'],
): Column {
  return { name, title, help, width, isNumber: false, order, text };
}

function metric(
  name: string,
  title: string,
  help: string,
  order: string,
  value: (run: RunJson) => number | string | undefined,
  format: (value: number) => string = formatValue,
): Column {
  const text = (run: RunJson) => {
    const found = value(run);
    return found === undefined ? '' : format(Number(found));
  };
  // Heads of the two that follow the cursor name its step as well.
  const width = name === 'loss' ? 104 : name === 'gradient_norm' ? 124 : 92;
  return { name, title, help, width, isNumber: true, order, text };
}

const summary = (name: keyof SummaryJson) => (run: RunJson) => run.summary?.[name];
const time = (value: string | undefined) => (value ? formatTime(new Date(value)) : '');
const positive = (value: number | undefined) =>
  value !== undefined && value > 0 ? value : undefined;

/** Facts and numbers, in the order in which they are offered. */
export const ownColumns: readonly Column[] = [
  fact('step', 'step', 'steps stored, of the steps in the run', 168, 'step', () => ''),
  metric('loss', 'loss', 'loss of the last step stored, in nats per token', 'final_loss', (run) =>
    summary('finalLoss')(run),
  ),
  metric(
    'gradient_norm',
    'grad norm',
    'L2 norm over all parameters, before clipping, of the last step stored',
    'final_gradient_norm',
    summary('finalGradientNorm'),
  ),
  fact('trend', 'trend', 'loss over all planned steps, by its logarithm', 84, '', () => ''),
  metric('min_loss', 'min loss', 'smallest finite loss, in nats per token', 'min_loss', (run) =>
    summary('minLoss')(run),
  ),
  metric(
    'max_gradient_norm',
    'max norm',
    'largest gradient norm, before clipping',
    'max_gradient_norm',
    summary('maxGradientNorm'),
  ),
  metric(
    'validation_loss',
    'val loss',
    'latest loss on the held-out part, in nats per token',
    'validation_loss',
    summary('validationLoss'),
  ),
  metric(
    'first_bad_step',
    'bad step',
    'first step whose loss or gradient norm is not finite',
    'first_bad_step',
    summary('firstBadStep'),
    String,
  ),
  metric('speed', 'steps/s', 'steps per second, over the latest steps', '', (run) =>
    positive(run.progress?.stepsPerSecond as number | undefined),
  ),
  metric(
    'parameters',
    'params',
    'trained numbers in the model',
    'parameter_count',
    summary('parameterCount'),
    formatLarge,
  ),
  metric(
    'memory',
    'memory',
    'memory that training needs, estimated, in bytes',
    '',
    summary('memoryBytes'),
    (bytes) => `${formatLarge(bytes)}B`,
  ),
  metric(
    'time',
    'took',
    'how long its attempts ran, without waiting and pauses',
    'run_seconds',
    (run) => positive(run.runSeconds as number | undefined),
    formatDuration,
  ),
  fact(
    'note',
    'note',
    'what it waits for, when it will be done, how it ended',
    180,
    '',
    (run, nameOf) => noteText(run, nameOf),
  ),
  fact('user', 'who', 'who submitted it', 84, 'user', (run) => run.user ?? ''),
  fact('labels', 'labels', 'its labels', 120, '', (run) => (run.labels ?? []).join(', ')),
  fact(
    'device',
    'device',
    'where it trains or trained last',
    84,
    'device',
    (run) => run.attempts?.at(-1)?.device || run.device || '',
  ),
  fact('priority', 'class', 'its class in the queue', 72, '', (run) => run.priority ?? ''),
  fact('created', 'created', 'when it was submitted', 104, 'created', (run) =>
    time(run.createTime),
  ),
  fact('ended', 'ended', 'when it ended', 104, 'ended', (run) => time(run.endTime)),
];

/** Heads of settings that are shorter than their names. */
const shortTitles: Record<string, string> = { learning_rate: 'lr', d_model: 'width' };
const narrow = new Set(['layers', 'heads', 'seed', 'learning_rate', 'd_model']);

/** The column of a setting, whether this server has such a setting or not. */
export function settingColumn(name: string, help = ''): Column {
  return {
    name,
    title: shortTitles[name] ?? name.replaceAll('_', ' '),
    help: help || `setting ${name}`,
    width: narrow.has(name) ? 68 : 96,
    isNumber: name !== 'placement',
    order: name,
    text: (run) => formatSetting(settingOf(run.effectiveSpec ?? run.spec, name)),
  };
}

const defaults = {
  wide: 'placement,layers,learning_rate,step,loss,gradient_norm,trend,note,user',
  narrow: 'step,loss,gradient_norm,trend',
  phone: 'step,loss,gradient_norm',
};
export type PageWidth = keyof typeof defaults;

/** The names of the columns shown: those of the address, or what fits. */
export function columnNames(text: string | undefined, width: PageWidth): string[] {
  const names = (text ?? defaults[width]).split(',').filter((name) => /^[a-z0-9_]+$/.test(name));
  return [...new Set(names)];
}

export function columnsOf(names: readonly string[], helpOf: (name: string) => string): Column[] {
  const own = new Map(ownColumns.map((column) => [column.name, column]));
  return names.map((name) => own.get(name) ?? settingColumn(name, helpOf(name)));
}

/** Shows a column that was not, behind the others of its kind, or takes it away. */
export function toggleColumn(names: readonly string[], name: string): string[] {
  if (names.includes(name)) return names.filter((one) => one !== name);
  const isOwn = (one: string) => ownColumns.some((column) => column.name === one);
  // Settings stand before what became of them.
  const at = isOwn(name) ? names.length : names.filter((one) => !isOwn(one)).length;
  return [...names.slice(0, at), name, ...names.slice(at)];
}

/** What an order by this field becomes by a click on its head: rising, falling, none. */
export function nextOrder(order: string, field: string): string | undefined {
  if (order === field) return `${field} desc`;
  return order === `${field} desc` ? undefined : field;
}
