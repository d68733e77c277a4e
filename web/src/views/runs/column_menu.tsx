// Which columns the table has: facts and numbers of runs, and every setting.
import { useEffect, useState } from 'preact/hooks';
import { ownColumns, toggleColumn } from '../../state/columns';
import type { Live } from '../../state/live';
import { Menu } from '../shared/menu';
import { showColumns, shownColumns } from './runs_state';

export function ColumnMenu({ live }: { live: Live }) {
  return (
    <Menu label="columns ▾" title="columns of the table">
      {(close) => <ColumnList live={live} close={close} />}
    </Menu>
  );
}

function ColumnList({ live, close }: { live: Live; close: () => void }) {
  const [words, setWords] = useState('');
  useEffect(() => live.needSettings(), [live]);
  const wanted = words.trim().toLowerCase();
  const isWanted = (...texts: string[]) =>
    texts.some((text) => text.toLowerCase().includes(wanted));
  const own = ownColumns.filter((column) => isWanted(column.title, column.help));
  const settings = live.settings.value.filter(({ name, help }) => isWanted(name, help));
  return (
    <div class="columns">
      <input
        type="search"
        placeholder="find a column"
        aria-label="find a column"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
      <ColumnBoxes
        title="of a run"
        columns={own.map(({ name, title, help }) => ({ name, title, help }))}
      />
      <ColumnBoxes
        title="settings"
        columns={settings.map(({ name, help }) => ({ name, title: name, help }))}
      />
      <p>
        <button
          type="button"
          onClick={() => {
            showColumns(undefined);
            close();
          }}
        >
          the usual ones
        </button>
      </p>
    </div>
  );
}

interface Choice {
  name: string;
  title: string;
  help: string;
}

function ColumnBoxes({ title, columns }: { title: string; columns: readonly Choice[] }) {
  if (columns.length === 0) return null;
  const shown = shownColumns.value;
  return (
    <fieldset>
      <legend>{title}</legend>
      {columns.map((column) => (
        <label key={column.name} title={column.help}>
          <input
            type="checkbox"
            checked={shown.includes(column.name)}
            onChange={() => showColumns(toggleColumn(shown, column.name))}
          />{' '}
          {column.title}
        </label>
      ))}
    </fieldset>
  );
}
