// Above the table: what is listed, what is wrong with the search, and what the table shows.
import { formatCount } from '../../format/format';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { ColumnMenu } from './column_menu';
import { isGrouped, order } from './runs_state';

export function ListBar({ live }: { live: Live }) {
  const { query } = address.value;
  return (
    <div class="strip list-bar">
      <Count live={live} />
      {query.filter ? (
        <button type="button" onClick={() => setQuery({ filter: undefined })}>
          show all runs
        </button>
      ) : null}
      {order.value ? (
        <button type="button" onClick={() => setQuery({ order: undefined })}>
          newest first
        </button>
      ) : (
        <label>
          <input
            type="checkbox"
            checked={isGrouped.value}
            onChange={() => setQuery({ flat: isGrouped.value ? 'yes' : undefined })}
          />{' '}
          by experiment
        </label>
      )}
      <span class="space" />
      <ColumnMenu live={live} />
    </div>
  );
}

function Count({ live }: { live: Live }) {
  const { query } = address.value;
  const problem = live.query.problem.value;
  if (problem) {
    const isSearch = live.query.refused.value;
    return (
      <span class="problem" role="alert">
        {isSearch ? problem : `The list of runs could not be read: ${problem}; trying again.`}
      </span>
    );
  }
  if (!live.query.listed.value) return <span class="secondary">reading…</span>;
  const total = live.query.total.value;
  const runs = `${formatCount(total)} ${total === 1 ? 'run' : 'runs'}`;
  return <span role="status">{query.filter ? `${runs} found` : runs}</span>;
}
