// The rows of the run table, and which of them a window of it shows.

export type TableRow =
  | { kind: 'group'; key: string; experiment: string; runs: readonly string[]; isClosed: boolean }
  /** A heading above runs that are drawn and not in the list. */
  | { kind: 'others'; key: string; runs: readonly string[] }
  | { kind: 'run'; key: string; run: string; inGroup: boolean };

interface GroupOfRuns {
  experiment: string | undefined;
  runs: readonly string[];
}

/** `others`: runs that are drawn and not in any of the groups; they stand first. */
export function tableRows(
  groups: readonly GroupOfRuns[],
  others: readonly string[],
  closed: ReadonlySet<string>,
): TableRow[] {
  const rows: TableRow[] = [];
  const addRuns = (runs: readonly string[], inGroup: boolean) => {
    for (const run of runs) rows.push({ kind: 'run', key: run, run, inGroup });
  };
  if (others.length > 0) {
    rows.push({ kind: 'others', key: 'others', runs: others });
    addRuns(others, true);
  }
  for (const { experiment, runs } of groups) {
    if (experiment === undefined) {
      addRuns(runs, false);
      continue;
    }
    const isClosed = closed.has(experiment);
    rows.push({ kind: 'group', key: `group ${experiment}`, experiment, runs, isClosed });
    if (!isClosed) addRuns(runs, true);
  }
  return rows;
}

export interface RowWindow {
  /** First row shown, and the one behind the last. */
  from: number;
  to: number;
}

/** Rows above and below the window that are there already when somebody scrolls. */
const margin = 8;

export function rowWindow(
  scrollTop: number,
  height: number,
  rowHeight: number,
  rows: number,
): RowWindow {
  const first = Math.floor(scrollTop / rowHeight) - margin;
  const from = Math.max(0, Math.min(first, rows - 1));
  const to = Math.min(rows, Math.ceil((scrollTop + height) / rowHeight) + margin);
  return { from, to: Math.max(from, to) };
}

/** Where to scroll so that a row is seen, with the head of the table over the first ones. */
export function scrollToRow(
  row: number,
  scrollTop: number,
  height: number,
  rowHeight: number,
  headHeight: number,
): number {
  const top = row * rowHeight;
  const seen = height - headHeight - rowHeight;
  if (top < scrollTop) return top;
  return top > scrollTop + seen ? Math.max(0, top - seen) : scrollTop;
}
