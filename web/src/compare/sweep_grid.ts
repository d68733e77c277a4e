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

/** Runs that are alike in all settings but those of the table, and the seed. */
export interface SweepPart {
  /** placement=pre; empty where nothing else differs. */
  name: string;
  runs: RunJson[];
}

/**
 * One part, and so a table of its own, for each combination of the settings that differ besides `inside`:
 * a median over runs of different kinds would be nobody's number.
 */
export function sweepParts(
  runs: readonly RunJson[],
  differing: readonly string[],
  inside: readonly string[],
): SweepPart[] {
  const others = differing.filter((name) => name !== 'seed' && !inside.includes(name));
  const parts = new Map<string, RunJson[]>();
  for (const run of runs) {
    const name = others
      .map((other) => `${other}=${textOfSetting(run.effectiveSpec, other)}`)
      .join(', ');
    const known = parts.get(name);
    if (known) known.push(run);
    else parts.set(name, [run]);
  }
  return [...parts].map(([name, some]) => ({ name, runs: some }));
}

// Numbers by size, then words as they came.
function inOrder(values: readonly string[]): string[] {
  const all = [...new Set(values)];
  const isNumber = (text: string) => text !== '' && Number.isFinite(Number(text));
  const numbers = all.filter(isNumber).sort((a, b) => Number(a) - Number(b));
  return [...numbers, ...all.filter((text) => !isNumber(text))];
}

/**
 * The two settings to begin with: of those that differ, without the seed, the ones with the most values,
 * in the order in which they are given. Empty texts where there are not so many.
 */
export function firstAxes(differing: readonly { name: string; values: readonly string[] }[]): {
  row: string;
  column: string;
} {
  const axes = differing
    .filter(({ name }) => name !== 'seed')
    .map(({ name, values }, place) => ({ name, place, count: new Set(values).size }))
    .sort((a, b) => b.count - a.count)
    .slice(0, 2)
    .sort((a, b) => a.place - b.place);
  return { row: axes[0]?.name ?? '', column: axes[1]?.name ?? '' };
}
