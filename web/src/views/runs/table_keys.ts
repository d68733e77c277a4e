// The keyboard in the run table: arrows, Home, End and Page keys move, Space draws, Enter opens, M or
// the menu key shows what can be done with a run, Left and Right fold and unfold an experiment.
import type { Signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Live } from '../../state/live';
import { goTo } from '../../state/router';
import { scrollToRow, type TableRow } from '../../state/table_rows';
import { toggleRow } from './pick';
import { showRowMenu } from './row_menu_state';
import { activeRow, fold, rowToFocus } from './runs_state';

/** Of every row and of the head, in CSS pixels; runs.css has it too. */
export const rowHeight = 26;

export function useTableKeys(
  live: Live,
  box: { current: HTMLElement | null },
  rows: Signal<readonly TableRow[]>,
): (event: KeyboardEvent) => void {
  return useMemo(() => {
    const moveTo = (index: number) => {
      const all = rows.peek();
      const at = Math.max(0, Math.min(all.length - 1, index));
      const element = box.current;
      const row = all[at];
      if (!element || !row) return;
      element.scrollTop = scrollToRow(
        at,
        element.scrollTop,
        element.clientHeight,
        rowHeight,
        rowHeight,
      );
      activeRow.value = row.key;
      rowToFocus.value = row.key;
    };
    return (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      if (target.closest('thead')) return;
      const key = target.closest<HTMLElement>('tr[data-row]')?.dataset.row;
      const at = rows.peek().findIndex((row) => row.key === key);
      const row = rows.peek()[at];
      if (!row) return;
      const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / rowHeight) - 2);
      const moves: Record<string, number> = {
        ArrowDown: at + 1,
        ArrowUp: at - 1,
        PageDown: at + page,
        PageUp: at - page,
        Home: 0,
        End: rows.peek().length - 1,
      };
      const to = moves[event.key];
      if (to !== undefined) moveTo(to);
      else if (!act(live, event, row, target)) return;
      event.preventDefault();
    };
  }, [live, box, rows]);
}

/** False for a key that means nothing here. */
function act(live: Live, event: KeyboardEvent, row: TableRow, target: HTMLElement): boolean {
  const { key } = event;
  const isControl = target.closest('button, a, input') !== null;
  if (key === ' ' && !isControl) {
    toggleRow(live, row);
    return true;
  }
  if (key === 'Enter' && !isControl) {
    if (row.kind === 'run') goTo('run', row.run);
    else if (row.kind === 'group') goTo('experiment', row.experiment);
    return true;
  }
  const isMenuKey = key === 'm' || key === 'ContextMenu' || (key === 'F10' && event.shiftKey);
  if (isMenuKey && row.kind === 'run') {
    const element = target.closest('tr');
    if (element) showRowMenu(row.run, element);
    return true;
  }
  if (row.kind !== 'group') return false;
  if (key !== (row.isClosed ? 'ArrowRight' : 'ArrowLeft')) return false;
  fold(row.experiment);
  return true;
}
