// What the table of runs shows and where one is in it: from the address, the window and the
// keyboard.
import { computed, signal } from '@preact/signals';
import { type Column, columnNames, columnsOf, type PageWidth } from '../../state/columns';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { groupRuns } from '../../state/run_list';
import { type TableRow, tableRows } from '../../state/table_rows';
import { parseIds } from '../../state/url_state';

function matches(query: string) {
  const list = matchMedia(query);
  const is = signal(list.matches);
  list.addEventListener('change', () => {
    is.value = list.matches;
  });
  return is;
}

const isPhone = matches('(max-width: 560px)');
const isNarrow = matches('(max-width: 900px)');
export const pageWidth = computed((): PageWidth => {
  if (isPhone.value) return 'phone';
  return isNarrow.value ? 'narrow' : 'wide';
});

const query = computed(() => address.value.query);
const columnsText = computed(() => query.value.cols);
export const shownColumns = computed(() => columnNames(columnsText.value, pageWidth.value));

export function showColumns(names: readonly string[] | undefined): void {
  setQuery({ cols: names?.join() });
}

/** "final_loss desc"; '' is newest first. */
export const order = computed(() => query.value.order ?? '');
/** An order of all runs goes through all experiments, so only without one they are groups. */
export const isGrouped = computed(() => order.value === '' && query.value.flat === undefined);

const closedText = computed(() => query.value.closed);
const closed = computed(() => new Set(parseIds(closedText.value)));

export function fold(experiment: string): void {
  const next = new Set(closed.peek());
  if (!next.delete(experiment)) next.add(experiment);
  setQuery({ closed: next.size > 0 ? [...next].join() : undefined });
}

/** All rows of the table, as far as they were read. */
export function rowsOf(live: Live): readonly TableRow[] {
  const listed = live.query.ids.value;
  const known = new Set(listed);
  // Runs that only the address names stay in sight, since the table is the legend of the charts.
  const others = live.chosen.value.filter((run) => !known.has(run));
  const groups = isGrouped.value
    ? groupRuns(listed, (id) => live.runs.peek(id)?.experiment)
    : listed.map((run) => ({ experiment: undefined, runs: [run] }));
  return tableRows(groups, others, closed.value);
}

export function columnsShown(live: Live): readonly Column[] {
  const help = new Map(live.settings.value.map((setting) => [setting.name, setting.help]));
  return columnsOf(shownColumns.value, (name) => help.get(name) ?? '');
}

/** The row that the arrow keys start from. */
export const activeRow = signal<string | undefined>(undefined);
/** The row that takes the keyboard as soon as it is there. */
export const rowToFocus = signal<string | undefined>(undefined);
