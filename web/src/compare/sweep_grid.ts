// The runs of a sweep as a table over two settings.

import { textOfSetting } from '../format/settings';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { type OutcomeKind, type Spread, spreadOf } from './outcomes';

export interface SweepCell {
  row: string;
  column: string;
  runs: RunJson[];
  spread: Spread | undefined;
}

export interface SweepGrid {
  rows: string[];
  columns: string[];
  /** By row, then column; undefined: no run has these two values. */
  cells: (SweepCell | undefined)[][];
}

/** Where several runs share a cell (seeds, or a third setting) it has their median. */
export function sweepGrid(
  runs: readonly RunJson[],
  rowSetting: string,
  columnSetting: string,
  kind: OutcomeKind,
): SweepGrid {
  const rowOf = (run: RunJson) => textOfSetting(run.effectiveSpec, rowSetting);
  const columnOf = (run: RunJson) => textOfSetting(run.effectiveSpec, columnSetting);
  const rows = inOrder(runs.map(rowOf));
  const columns = inOrder(runs.map(columnOf));
  const cells = rows.map((row) =>
    columns.map((column): SweepCell | undefined => {
      const here = runs.filter((run) => rowOf(run) === row && columnOf(run) === column);
      return here.length === 0
        ? undefined
        : { row, column, runs: here, spread: spreadOf(kind, here) };
    }),
  );
  return { rows, columns, cells };
}

// Numbers by size, then words as they came.
function inOrder(values: readonly string[]): string[] {
  const all = [...new Set(values)];
  const isNumber = (text: string) => text !== '' && Number.isFinite(Number(text));
  const numbers = all.filter(isNumber).sort((a, b) => Number(a) - Number(b));
  return [...numbers, ...all.filter((text) => !isNumber(text))];
}

/**
 * The two settings to begin with: of those that differ, the ones with the most values, without the
 * seed; of two alike the first. Empty texts where there are not so many.
 */
export function firstAxes(differing: readonly { name: string; values: readonly string[] }[]): {
  row: string;
  column: string;
} {
  const axes = differing
    .filter(({ name }) => name !== 'seed')
    .map(({ name, values }) => ({ name, count: new Set(values).size }))
    .sort((a, b) => b.count - a.count);
  return { row: axes[0]?.name ?? '', column: axes[1]?.name ?? '' };
}
