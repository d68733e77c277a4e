// Which runs the charts of a view draw, and where they are zoomed to: from the address, and back
// into it.
import { computed, signal } from '@preact/signals';
import { address, setQuery } from './router';
import { formatRange, parseIds, parseRange, type Range, type View } from './url_state';

/** Where a view that lets people choose runs keeps them in its address. */
const listNames: Partial<Record<View, string>> = {
  runs: 'sel',
  compare: 'runs',
  experiment: 'sel',
};

const listText = computed(() => {
  const { view, id, query } = address.value;
  if (view === 'run') return id;
  const name = listNames[view];
  return name === undefined ? '' : query[name];
});

/** Ids of the runs that are drawn, in the order in which they were chosen. */
export const selected = computed(() => parseIds(listText.value) ?? []);
/** False until the address, or a choice, says what is drawn. */
export const selectionIsMade = computed(() => listText.value !== undefined);

const zoomText = computed(() => address.value.query.x);
/** The steps zoomed to, in all charts. */
export const zoom = computed(() => parseRange(zoomText.value));

/** Not in the address: what the pointer is at. */
export const hoveredRun = signal<string | undefined>(undefined);
/** The step under the cursor, where it is the same one in all runs. */
export const cursorStep = signal<number | undefined>(undefined);
/** The place on the x axis under the cursor, in the axis' own units. */
export const cursorX = signal<number | undefined>(undefined);

/** Does nothing in a view that draws no runs, or always the same. */
export function select(runs: readonly string[]): void {
  const name = listNames[address.peek().view];
  if (name !== undefined) setQuery({ [name]: [...new Set(runs)].join() });
}

/** Stops drawing a run that is gone. */
export function deselect(run: string): void {
  if (selected.peek().includes(run)) select(selected.peek().filter((one) => one !== run));
}

/** Draws all of these runs, or none of them if all were drawn already. */
export function toggle(runs: readonly string[]): void {
  const before = selected.peek();
  const allOn = runs.every((run) => before.includes(run));
  select(allOn ? before.filter((run) => !runs.includes(run)) : [...before, ...runs]);
}

export function zoomTo(range: Range | undefined): void {
  setQuery({ x: formatRange(range) });
}
