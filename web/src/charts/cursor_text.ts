// What is written about the place under the cursor.
import { exactWord, formatCount, formatValue, isolated } from '../format/format';
import type { Series } from '../state/curve';

/**
 * A curve's value at a step; of one whose point there was thinned away, the last one before it with
 * its own step. Empty beyond the curve.
 */
export function valueText(
  series: Series | undefined,
  step: number,
  format: (value: number) => string = formatValue,
): string {
  if (!series) return '';
  if (series.lacks(step)) return 'no point';
  const point = series.pointAt(step);
  if (!point) return '';
  const text = format(point.value);
  return point.step === step ? text : `${text} (step ${formatCount(point.step)})`;
}

/** What is told of one curve at the step that is under the cursor. */
export interface CursorValue {
  name: string;
  step: number;
  text: string;
  /** Nothing that a line could show: told however many curves there are. */
  isSpecial: boolean;
}

export function cursorValue(
  name: string,
  series: Series | undefined,
  step: number | undefined,
): CursorValue[] {
  if (!series || step === undefined) return [];
  const text = valueText(series, step, (value) =>
    Number.isFinite(value) ? formatValue(value) : exactWord(value),
  );
  const value = series.pointAt(step)?.value;
  return text === ''
    ? []
    : [{ name, step, text, isSpecial: value === undefined || !Number.isFinite(value) }];
}

// Of more curves than these the values are in the table of runs.
const mostNamed = 3;

/** `step 55: 0.0123`; with names where there are several curves, and with steps where these differ. */
export function cursorNote(values: readonly CursorValue[], curves: number): string {
  const told = values.filter(({ isSpecial }) => isSpecial || curves <= mostNamed);
  const steps = new Set(told.map(({ step }) => step));
  const parts = told.map(({ name, step, text }) => {
    const about = [
      ...(curves > 1 ? [isolated(name)] : []),
      ...(steps.size > 1 ? [`step ${formatCount(step)}`] : []),
    ];
    return about.length > 0 ? `${text} (${about.join(', ')})` : text;
  });
  const [only] = steps;
  const at = steps.size === 1 && only !== undefined ? `step ${formatCount(only)}: ` : '';
  return at + parts.join(', ');
}
