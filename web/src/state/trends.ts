// The small curves of the table: a few points of each run's loss, read when its row is first seen
// and from then on drawn out by the progress that the event stream brings anyway.
import { type Signal, signal } from '@preact/signals';
import { runOf, type SeriesAnswer, type StreamEvent, toNumber } from '../api/events';
import { thin } from './thin';

export interface Trend {
  steps: readonly number[];
  values: readonly number[];
}

/** Points of a trend as it is read; its picture is not much wider than that in pixels. */
export const trendPoints = 60;
const heldLimit = 2 * trendPoints;
/** Requests at the same time: a browser has six connections to a server, and others need some. */
const atOnce = 2;
const retryMilliseconds = 5_000;
const leastDecades = 0.34;
const leastShare = 0.34;

interface Entry {
  shown: Signal<Trend | undefined>;
  state: 'wanted' | 'reading' | 'read' | 'stale';
  /** Progress since it became stale, which goes behind what will be read. */
  since: Trend;
  /** Counts requests, so that an answer to an earlier one is known as such. */
  round: number;
}

const nothing: Trend = { steps: [], values: [] };

type Read = (run: string, signal: AbortSignal) => Promise<SeriesAnswer | undefined>;

export class TrendStore {
  private readonly entries = new Map<string, Entry>();
  private readonly stopped = new AbortController();
  private seen: readonly string[] = [];
  private reading = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly read: Read) {}

  /** The rows that are seen now. Others are not read until they are seen. */
  show(runs: readonly string[]): void {
    this.seen = runs;
    for (const run of runs) {
      const entry = this.entryOf(run);
      if (entry.state === 'stale') entry.state = 'wanted';
    }
    this.readNext();
  }

  trend(run: string): Trend | undefined {
    return this.entryOf(run).shown.value;
  }

  takeEvent(event: StreamEvent): void {
    const entry = this.entries.get(runOf(event));
    if (!entry) return;
    if (event.kind === 'deleted') {
      this.entries.delete(event.run);
    } else if (event.kind === 'attempt') {
      this.outdate(entry); // it may have gone back to an earlier checkpoint
    } else if (event.kind === 'progress') {
      const loss = event.summary?.finalLoss;
      if (loss === undefined) return;
      const step = Number(event.progress.step ?? 0);
      entry.shown.value = appended(entry.shown.peek() ?? nothing, step, toNumber(loss));
      if (entry.state !== 'read') entry.since = appended(entry.since, step, toNumber(loss));
    } else if (event.kind === 'end') {
      // Progress leaves the last steps out.
      const last = entry.shown.peek()?.steps.at(-1) ?? 0;
      if (last < Number(event.run.progress?.step ?? 0)) this.outdate(entry);
    }
  }

  /** Events may have been missed. */
  reset(): void {
    for (const entry of this.entries.values()) this.outdate(entry);
  }

  stop(): void {
    this.stopped.abort();
    clearTimeout(this.timer);
  }

  private entryOf(run: string): Entry {
    let entry = this.entries.get(run);
    if (!entry) {
      entry = { shown: signal(undefined), state: 'stale', since: nothing, round: 0 };
      this.entries.set(run, entry);
    }
    return entry;
  }

  // What is drawn stays until its successor is there.
  private outdate(entry: Entry): void {
    entry.state = 'stale';
    entry.since = nothing;
    entry.round++;
    this.show(this.seen);
  }

  private readNext(): void {
    for (const run of this.seen) {
      if (this.reading >= atOnce || this.stopped.signal.aborted) return;
      const entry = this.entries.get(run);
      if (entry?.state === 'wanted') this.readOne(run, entry);
    }
  }

  private readOne(run: string, entry: Entry): void {
    entry.state = 'reading';
    const round = ++entry.round;
    this.reading++;
    this.read(run, this.stopped.signal)
      .then(
        (answer) => {
          if (entry.round !== round) return;
          entry.state = 'read';
          let trend = trendOf(answer);
          entry.since.steps.forEach((step, index) => {
            trend = appended(trend, step, entry.since.values[index] as number);
          });
          entry.shown.value = trend;
        },
        () => {
          // The server is away, or the run is gone. Whoever still sees the row asks again later.
          if (entry.round !== round) return;
          entry.state = 'stale';
          clearTimeout(this.timer);
          if (!this.stopped.signal.aborted) {
            this.timer = setTimeout(() => this.show(this.seen), retryMilliseconds);
          }
        },
      )
      .finally(() => {
        this.reading--;
        this.readNext();
      });
  }
}

function trendOf(answer: SeriesAnswer | undefined): Trend {
  return { steps: answer?.steps ?? [], values: (answer?.values ?? []).map(toNumber) };
}

function appended(before: Trend, step: number, value: number): Trend {
  if (step <= (before.steps.at(-1) ?? 0)) return before;
  const grown = { steps: [...before.steps, step], values: [...before.values, value] };
  return grown.steps.length > heldLimit ? thin(grown.steps, grown.values, trendPoints) : grown;
}

/**
 * The picture of a trend as the `d` of an SVG path: over all planned steps, so that a run is seen
 * to come on; by the logarithm where all values allow it. What is not finite breaks the line.
 */
export function trendPath(
  { steps, values }: Trend,
  plannedSteps: number,
  width: number,
  height: number,
): string {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return '';
  const isLog = finite.every((value) => value > 0);
  const scale = (value: number) => (isLog ? Math.log10(value) : value);
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of finite) {
    low = Math.min(low, scale(value));
    high = Math.max(high, scale(value));
  }
  // Noise of a level curve is no trend: a third of a decade, or of the value, is the least height.
  const least = isLog ? leastDecades : leastShare * Math.max(Math.abs(low), Math.abs(high));
  const spare = Math.max(0, least - (high - low)) / 2;
  low -= spare;
  high += spare;
  const span = Math.max(plannedSteps, steps.at(-1) ?? 1, 1);
  const x = (step: number) => ((step / span) * width).toFixed(1);
  const y = (value: number) => {
    const share = high > low ? (scale(value) - low) / (high - low) : 0.5;
    return (1 + (1 - share) * (height - 2)).toFixed(1);
  };
  let path = '';
  let isBroken = true;
  values.forEach((value, index) => {
    if (!Number.isFinite(value)) {
      isBroken = true;
      return;
    }
    path += `${isBroken ? 'M' : 'L'}${x(steps[index] as number)} ${y(value)}`;
    isBroken = false;
  });
  return path;
}
