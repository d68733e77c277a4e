// Which runs a row stands for when it is chosen; those of an experiment are read first, if need be.
import { formatCount } from '../../format/format';
import type { Live } from '../../state/live';
import { select, selected, toggle } from '../../state/selection';
import type { TableRow } from '../../state/table_rows';
import { say, sayProblem } from '../shared/said';
import { rowsOf } from './runs_state';

/** No more runs of the list are read to find those of an experiment; as many as one may have. */
const mostRead = 10_000;

/** Draws what the row stands for, or stops to if all of it was drawn. */
export function toggleRow(live: Live, row: TableRow): void {
  if (row.kind === 'run') toggle([row.run]);
  else if (row.kind === 'group' && mayReadOn(live, row.experiment)) void pickAll(live, row);
  else toggle(row.runs);
}

function mayReadOn(live: Live, experiment: string): boolean {
  return live.query.isPartDownTo(experiment) && live.query.ids.value.length < mostRead;
}

async function pickAll(live: Live, { key, experiment }: { key: string; experiment: string }) {
  try {
    say('reading the other runs of it…');
    // All runs of an experiment are newer than itself, and ids sort by time.
    const isWhole = await live.query.readDownTo(experiment, mostRead);
    const now = rowsOf(live).find((row) => row.key === key);
    const runs = now && now.kind !== 'run' ? now.runs : [];
    select([...selected.peek(), ...runs]);
    const count = `${formatCount(runs.length)} ${runs.length === 1 ? 'run' : 'runs'} selected`;
    say(
      isWhole
        ? count
        : `${count}: of the first ${formatCount(mostRead)} in the list. For the others, search the experiment.`,
    );
  } catch (error) {
    sayProblem('select', error);
  }
}
