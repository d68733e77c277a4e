// The run table: also the legend of the charts. Only the rows that are seen are in the page, and the
// next page of runs is asked for when somebody scrolls near the end of those that are known.
import { computed, type Signal, signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Live } from '../../state/live';
import { type RowWindow, rowWindow, type TableRow } from '../../state/table_rows';
import { GroupRow } from './group_row';
import { RunRow } from './run_row';
import { activeRow, columnsShown, rowsOf } from './runs_state';
import { leastWidth, TableColumns, TableHead } from './table_head';
import { rowHeight, useTableKeys } from './table_keys';

/** The next page is asked for when so few rows are left below the window. */
const rowsAhead = 40;

interface Scroll {
  top: number;
  height: number;
}

export function RunTable({ live }: { live: Live }) {
  const box = useRef<HTMLDivElement>(null);
  const scroll = useScroll(box);
  const rows = useMemo(() => computed(() => rowsOf(live)), [live]);
  const shown = useWindow(scroll, rows);
  const onKeyDown = useTableKeys(live, box, rows);
  useVisibleRows(live, rows, shown);

  const columns = columnsShown(live);
  const { from, to } = shown.value;
  const all = rows.value;
  const visible = all.slice(from, to);
  const unread = Math.max(0, live.query.total.value - live.query.ids.value.length);
  const stop = visible.find((row) => row.key === activeRow.value) ?? visible[0];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the rows inside
    <div class="table" ref={box} onKeyDown={onKeyDown}>
      <table
        aria-rowcount={1 + all.length + unread}
        aria-busy={!live.query.listed.value}
        style={{ minWidth: `${leastWidth(columns)}px` }}
      >
        <caption class="hidden">
          Runs. Arrow keys move, space draws, enter opens, M shows what can be done.
        </caption>
        <TableColumns columns={columns} />
        <TableHead columns={columns} />
        <tbody>
          <Spacer rows={from} />
          {visible.map((row, at) =>
            row.kind === 'run' ? (
              <RunRow
                key={row.key}
                live={live}
                id={row.run}
                inGroup={row.inGroup}
                columns={columns}
                index={from + at + 1}
                isStop={row === stop}
              />
            ) : (
              <GroupRow
                key={row.key}
                live={live}
                row={row}
                columns={columns.length + 4}
                index={from + at + 1}
                isStop={row === stop}
              />
            ),
          )}
          <Spacer rows={all.length - to + unread} />
        </tbody>
      </table>
    </div>
  );
}

/** Stands for rows that are not in the page. */
function Spacer({ rows }: { rows: number }) {
  if (rows <= 0) return null;
  return (
    <tr class="spacer">
      <td style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}

function useScroll(box: { current: HTMLDivElement | null }): Signal<Scroll> {
  const scroll = useMemo(() => signal<Scroll>({ top: 0, height: 0 }), []);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = () => {
      scroll.value = { top: element.scrollTop, height: element.clientHeight };
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    element.addEventListener('scroll', read, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', read);
    };
  }, [box, scroll]);
  return scroll;
}

/** Changes when other rows are shown, not with every pixel. */
function useWindow(scroll: Signal<Scroll>, rows: Signal<readonly TableRow[]>): Signal<RowWindow> {
  return useMemo(() => {
    let last: RowWindow = { from: 0, to: 0 };
    return computed(() => {
      const { top, height } = scroll.value;
      const next = rowWindow(top, height, rowHeight, rows.value.length);
      if (next.from !== last.from || next.to !== last.to) last = next;
      return last;
    });
  }, [scroll, rows]);
}

function useVisibleRows(
  live: Live,
  rows: Signal<readonly TableRow[]>,
  shown: Signal<RowWindow>,
): void {
  const all = rows.value;
  const { from, to } = shown.value;
  useEffect(() => {
    const runs = all.slice(from, to).flatMap((row) => (row.kind === 'run' ? [row.run] : []));
    live.trends.show(runs);
    if (to + rowsAhead >= all.length) live.query.more();
  }, [live, all, from, to]);
  useEffect(() => () => live.trends.show([]), [live]);
}
