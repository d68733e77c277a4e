import type { CSSProperties } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { timesText } from '../../format/run_text';
import { stateLook } from '../../format/state';
import type { Column } from '../../state/columns';
import type { Live } from '../../state/live';
import { hoveredRun, selected, toggle } from '../../state/selection';
import { addressOf } from '../../state/url_state';
import { rowMenu, showRowMenu } from './row_menu_state';
import { RunCell } from './run_cells';
import { activeRow, rowToFocus } from './runs_state';

interface Props {
  live: Live;
  id: string;
  inGroup: boolean;
  columns: readonly Column[];
  /** Place in the whole table, from 1. */
  index: number;
  /** The keyboard comes to this row first. */
  isStop: boolean;
}

export function RunRow({ live, id, inGroup, columns, index, isStop }: Props) {
  const row = useFocusedRow(id);
  const run = live.runs.get(id);
  if (!run) return null;
  const look = stateLook(run.state);
  const isSelected = selected.value.includes(id);
  const line = isSelected ? live.looks.value.get(id) : undefined;
  const style = line ? ({ '--run': line.colour } as CSSProperties) : {};
  const nameOf = (other: string) => live.runs.peek(other)?.displayName;
  const enter = () => {
    hoveredRun.value = isSelected ? id : undefined;
  };
  const leave = () => {
    hoveredRun.value = undefined;
  };
  // The whole row is the target, but neither a control in it nor text being marked to copy.
  const click = (event: MouseEvent) => {
    if ((event.target as Element).closest('input, button, a')) return;
    if (String(getSelection()) === '') toggle([id]);
  };
  return (
    <tr
      ref={row}
      class={isSelected ? 'run selected' : 'run'}
      style={style}
      data-run={id}
      data-row={id}
      aria-rowindex={index + 1}
      tabIndex={isStop ? 0 : -1}
      onMouseEnter={enter}
      onMouseLeave={leave}
      onClick={click}
    >
      {/* Classes of the cells' own: Chromium may forget to restyle cells for a class of their row. */}
      <td class={isSelected ? 'pick drawn' : 'pick'}>
        <input
          type="checkbox"
          tabIndex={-1}
          checked={isSelected}
          onChange={() => toggle([id])}
          onFocus={enter}
          onBlur={leave}
          aria-label={`draw ${run.displayName}`}
        />
      </td>
      <td class={`state ${look.word.replace(' ', '-')}`} title={timesText(run, nameOf)}>
        <span class="glyph" aria-hidden="true">
          {look.glyph}
        </span>
        {look.word}
      </td>
      <th
        scope="row"
        class={inGroup ? 'name in-group' : 'name'}
        title={`${run.displayName}\n${id}`}
      >
        <a href={addressOf('run', id)} tabIndex={-1}>
          {run.displayName}
        </a>
      </th>
      {columns.map((column) => (
        <RunCell key={column.name} live={live} run={run} id={id} column={column} nameOf={nameOf} />
      ))}
      <td class="do">
        <button
          type="button"
          tabIndex={-1}
          aria-expanded={rowMenu.value?.run === id}
          aria-label={`what can be done with ${run.displayName}`}
          title="cancel, pause, retry, label … (M)"
          onClick={(event) => {
            const element = event.currentTarget.closest('tr');
            if (element) showRowMenu(id, element);
          }}
        >
          ⋯
        </button>
      </td>
    </tr>
  );
}

/** A row that takes the keyboard when it was chosen by it, as soon as it is drawn. */
export function useFocusedRow(key: string) {
  const row = useRef<HTMLTableRowElement>(null);
  const isWanted = rowToFocus.value === key;
  useEffect(() => {
    if (!isWanted) return;
    row.current?.focus({ preventScroll: true });
    rowToFocus.value = undefined;
    activeRow.value = key;
  }, [isWanted, key]);
  return row;
}
