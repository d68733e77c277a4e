// The row of an experiment, above its runs; and the one above runs that are in no list.
import { useEffect, useRef } from 'preact/hooks';
import { formatCount } from '../../format/format';
import { stateLook } from '../../format/state';
import type { Live } from '../../state/live';
import { selected } from '../../state/selection';
import type { TableRow } from '../../state/table_rows';
import { addressOf } from '../../state/url_state';
import { toggleRow } from './pick';
import { useFocusedRow } from './run_row';
import { fold } from './runs_state';

interface Props {
  live: Live;
  row: Exclude<TableRow, { kind: 'run' }>;
  /** Of the whole table. */
  columns: number;
  index: number;
  isStop: boolean;
}

export function GroupRow({ live, row, columns, index, isStop }: Props) {
  const box = useRef<HTMLInputElement>(null);
  const element = useFocusedRow(row.key);
  const count = row.runs.filter((run) => selected.value.includes(run)).length;
  const isPart = row.kind === 'group' && live.query.isPartDownTo(row.experiment);
  const isAll = count === row.runs.length && !isPart;
  const some = count > 0 && !isAll;
  useEffect(() => {
    if (box.current) box.current.indeterminate = some;
  }, [some]);
  const isExperiment = row.kind === 'group';
  const name = isExperiment ? experimentName(live, row.experiment) : 'drawn, but not in this list';
  return (
    <tr
      ref={element}
      class="group"
      data-row={row.key}
      aria-rowindex={index + 1}
      tabIndex={isStop ? 0 : -1}
    >
      <td class="pick">
        <input
          ref={box}
          type="checkbox"
          tabIndex={-1}
          checked={isAll}
          onChange={() => toggleRow(live, row)}
          aria-label={`draw all runs of ${name}`}
        />
      </td>
      <th scope="row" colSpan={columns - 1}>
        {isExperiment ? (
          <>
            <button
              type="button"
              class="fold"
              tabIndex={-1}
              aria-expanded={!row.isClosed}
              aria-label={`runs of ${name}`}
              onClick={() => fold(row.experiment)}
            >
              <span aria-hidden="true">{row.isClosed ? '▸' : '▾'}</span>
            </button>{' '}
            <a class="title" href={addressOf('experiment', row.experiment)} tabIndex={-1}>
              {name}
            </a>
          </>
        ) : (
          <span class="title">{name}</span>
        )}{' '}
        <span class="secondary">{summary(live, row, isPart)}</span>
      </th>
    </tr>
  );
}

function experimentName(live: Live, id: string): string {
  const known = live.experiments.value.get(id);
  return known?.displayName || known?.preset || id.slice(-6);
}

// 3 runs: 2 running, 1 queued
function summary(live: Live, { runs }: Props['row'], isPart: boolean): string {
  const counts = new Map<string, number>();
  for (const run of runs) {
    const { word } = stateLook(live.runs.get(run)?.state);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const parts = [...counts].map(([word, count]) => `${formatCount(count)} ${word}`);
  const count = `${formatCount(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}`;
  return `${count}${isPart ? ' read so far' : ''}: ${parts.join(', ')}`;
}
