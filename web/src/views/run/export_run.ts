// A run's points as a file: all of them, and not only those that are drawn.
import { download, fileName } from '../../charts/download';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import { csvOf, tableRows } from '../../series/csv';
import { readAll } from '../../series/read_all';
import type { Live } from '../../state/live';
import { say, sayProblem } from '../shared/said';

export async function exportRun({ client }: Live, run: RunJson): Promise<void> {
  const id = run.id ?? '';
  const name = run.displayName ?? id;
  const { signal } = new AbortController();
  const parts: string[] = [];
  say('reading all points…');
  try {
    await readAll(
      {
        names: async () => Object.keys(await client.readSeries(id, [], 5, signal)),
        read: (names, from, to) => client.readSeries(id, names, 0, signal, { from, to }),
      },
      Number(run.progress?.step ?? 0),
      (piece, names) => {
        const text = csvOf(['run', 'step', ...names], tableRows(name, piece));
        parts.push(parts.length === 0 ? text : text.slice(text.indexOf('\n') + 1));
      },
    );
    const blob = new Blob(parts, { type: 'text/csv' });
    download(`${fileName(name, id.slice(-6))}.csv`, blob, 'text/csv');
    say('all points are in the file');
  } catch (error) {
    sayProblem('export', error);
  }
}
