// Every point of a run, in pieces that the server gives at once.
import type { SeriesAnswer } from '../api/events';
import type { NamedPoints } from './csv';

export interface AllPoints {
  /** Names of all series that the run has; a point or two of each tell. */
  names(): Promise<string[]>;
  read(names: readonly string[], from: number, to: number): Promise<Record<string, SeriesAnswer>>;
}

// The server refuses answers of more than two million points.
const pointsOfPiece = 1_000_000;

/** Steps are from 1 to `last`; `take` gets the pieces in order, each with all series. */
export async function readAll(
  source: AllPoints,
  last: number,
  take: (piece: NamedPoints[], names: readonly string[]) => void,
): Promise<void> {
  const names = await source.names();
  const steps = Math.max(1, Math.floor(pointsOfPiece / Math.max(1, names.length)));
  for (let from = 1; from <= last; from += steps) {
    const columns = await source.read(names, from, Math.min(last, from + steps - 1));
    take(
      names.map((name) => {
        const { steps, values } = columns[name] ?? { steps: [], values: [] };
        return { name, steps, values };
      }),
      names,
    );
  }
}
