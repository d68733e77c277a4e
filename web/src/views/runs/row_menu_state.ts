// The menu of one row of the run table: whose it is, and where.
import { signal } from '@preact/signals';

export interface RowMenuPlace {
  run: string;
  /** Of the row, in CSS pixels from the window's top. */
  top: number;
  bottom: number;
}

export const rowMenu = signal<RowMenuPlace | undefined>(undefined);

/** Shows the menu at a row; a second time, hides it. */
export function showRowMenu(run: string, row: Element): void {
  if (rowMenu.peek()?.run === run) {
    rowMenu.value = undefined;
    return;
  }
  const { top, bottom } = row.getBoundingClientRect();
  rowMenu.value = { run, top, bottom };
}
