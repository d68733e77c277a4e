// What this page draws and how: from the address, and back into it.
import { computed, effect, signal } from '@preact/signals';
import { formatUrl, parseUrl, type UrlState } from './url_state';

const url = signal<UrlState>({ selected: undefined, zoom: undefined });

/** Ids of the runs that are drawn, in the order in which they were chosen. */
export const selected = computed(() => url.value.selected ?? []);
/** False until the address, or a choice, says what is drawn. */
export const selectionIsMade = computed(() => url.value.selected !== undefined);
/** The steps zoomed to, in both charts. */
export const zoom = computed(() => url.value.zoom);

/** Not in the address: what the pointer is at. */
export const hoveredRun = signal<string | undefined>(undefined);
export const cursorStep = signal<number | undefined>(undefined);

export function startSelection(): void {
  const read = () => {
    url.value = parseUrl(location.hash);
  };
  read();
  addEventListener('hashchange', read);
  effect(() => {
    const hash = formatUrl(url.value);
    if (hash !== location.hash) history.replaceState(null, '', hash);
  });
}

export function select(runs: readonly string[]): void {
  url.value = { ...url.value, selected: [...new Set(runs)] };
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

export function zoomTo(range: UrlState['zoom']): void {
  url.value = { ...url.value, zoom: range };
}
