// The page's own address: what is shown, and the only place where it is kept.
import { effect, signal } from '@preact/signals';
import { type Address, addressOf, formatAddress, parseAddress, type View } from './url_state';

/** Read it; change it by the functions below. */
export const address = signal<Address>({ view: 'runs', id: '', query: {} });

/** Where each view was left, so that coming back to it by its name shows the same again. */
const left = signal<Partial<Record<View, string>>>({});

export function startRouter(): void {
  let known = ''; // the browser's address when it was last read or written here
  const read = () => {
    known = location.hash;
    address.value = parseAddress(known);
  };
  read();
  addEventListener('hashchange', read);
  effect(() => {
    const now = address.value;
    const hash = formatAddress(now);
    // Somebody goes elsewhere, and the event that says so is still to come: that counts.
    if (location.hash !== known) return;
    if (hash !== known) {
      history.replaceState(null, '', hash);
      known = location.hash;
    }
    if (left.peek()[now.view] !== hash) left.value = { ...left.peek(), [now.view]: hash };
  });
}

/** Goes to another view; the browser's back button returns. */
export function goTo(view: View, id = '', query: Record<string, string> = {}): void {
  location.hash = addressOf(view, id, query);
}

/** The address of a view as it was left. */
export function returnTo(view: View): string {
  return left.value[view] ?? addressOf(view);
}

/**
 * Changes what the present view keeps in its address; undefined takes a name away. No entry in the
 * browser's history: what is looked at changes, not where one is.
 */
export function setQuery(changes: Record<string, string | undefined>): void {
  const before = address.peek();
  const merged = Object.entries({ ...before.query, ...changes });
  const query = Object.fromEntries(
    merged.filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  address.value = { ...before, query };
}
