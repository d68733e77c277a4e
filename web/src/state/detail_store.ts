// What a zoomed chart shows of long runs: for the runs whose curves are thinned, the points of the
// range, read from the server when the range changes. Nothing is read while nothing is zoomed.
import { signal } from '@preact/signals';
import type { SeriesAnswer } from '../api/events';
import type { Range } from '../series/zoomed';
import { Curve } from './curve';

export type ReadRange = (
  run: string,
  range: Range,
  signal: AbortSignal,
) => Promise<Record<string, SeriesAnswer>>;

interface Entry {
  range: Range;
  curve: Curve | undefined;
  problem: string;
  request: AbortController;
}

const retryMilliseconds = 2_000;

export class DetailStore {
  /** Changes when a detail has come. */
  readonly version = signal(0);
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly readRange: ReadRange) {}

  /** Holds the detail of these runs, each in its range of steps, and no other. */
  show(ranges: ReadonlyMap<string, Range>): void {
    for (const [run, { range, request }] of this.entries) {
      const wanted = ranges.get(run);
      if (wanted && wanted.from === range.from && wanted.to === range.to) continue;
      request.abort();
      this.entries.delete(run);
    }
    for (const [run, range] of ranges) if (!this.entries.has(run)) this.read(run, range);
  }

  detail(run: string): Curve | undefined {
    return this.entries.get(run)?.curve;
  }

  problem(run: string): string {
    return this.entries.get(run)?.problem ?? '';
  }

  /** A run's curve is another one now: its latest attempt began anew from an earlier step. */
  forget(run: string): void {
    const known = this.entries.get(run);
    if (known) this.read(run, known.range);
  }

  private read(run: string, range: Range): void {
    this.entries.get(run)?.request.abort();
    const request = new AbortController();
    const entry: Entry = { range, curve: undefined, problem: '', request };
    this.entries.set(run, entry);
    const isWanted = () => this.entries.get(run) === entry;
    this.readRange(run, range, request.signal).then(
      (columns) => {
        if (!isWanted()) return;
        entry.curve = new Curve();
        entry.curve.setHistory(columns);
        this.version.value++;
      },
      (error: unknown) => {
        if (!isWanted()) return;
        entry.problem = error instanceof Error ? error.message : String(error);
        this.version.value++;
        setTimeout(() => {
          if (isWanted()) this.read(run, range);
        }, retryMilliseconds);
      },
    );
  }
}
