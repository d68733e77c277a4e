// The curves of the runs that this page draws: reads each one's history once the event stream
// covers the run, adds what the stream brings, and reads again where something was missed.
import { signal } from '@preact/signals';
import { ApiError } from '../api/client';
import { runOf, type SeriesAnswer, type StreamEvent } from '../api/events';
import { Curve } from './curve';
import type { AbandonedPart } from './lineage';

/** Series that every list of runs draws. */
export const drawnSeries = ['loss', 'gradient_norm'] as const;
export type DrawnSeries = (typeof drawnSeries)[number];

export interface CurveSource {
  /** `part`: only what an attempt left behind, instead of the default curve. */
  readSeries(
    run: string,
    signal: AbortSignal,
    part?: AbandonedPart,
  ): Promise<Record<string, SeriesAnswer>>;
  abandonedParts(run: string): AbandonedPart[];
  /** Number of the run's latest attempt, 0 when it has none or is not known. */
  latestAttempt(run: string): number;
  /** A run that the server does not have. */
  missing(run: string): void;
}

interface Entry {
  /** What is drawn. */
  shown: Curve;
  /** Collects live points while a history is awaited; replaces `shown` when it comes. */
  next: Curve | undefined;
  /** What attempts left behind, by what it was read for: it does not change any more. */
  abandoned: ReadonlyMap<string, Curve>;
  request: AbortController | undefined;
  covered: boolean;
  problem: string;
}

const retryMilliseconds = 2_000;

export class CurveStore {
  /** Changes, at most once a frame, when any curve has changed. */
  readonly version = signal(0);
  private readonly entries = new Map<string, Entry>();
  private announced = false;

  constructor(
    private readonly source: CurveSource,
    // Frames, not microtasks: a chart is never drawn more often than it can be seen.
    private readonly soon: (work: () => void) => void = nextFrame,
    /** The series that are kept; of others nothing is. */
    private readonly names: readonly string[] = drawnSeries,
  ) {}

  /** Keeps the curves of exactly these runs. */
  keep(runs: readonly string[]): void {
    const wanted = new Set(runs);
    for (const [run, entry] of this.entries) {
      if (wanted.has(run)) continue;
      entry.request?.abort();
      this.entries.delete(run);
    }
    for (const run of wanted) {
      if (this.entries.has(run)) continue;
      this.entries.set(run, {
        shown: new Curve(),
        next: new Curve(),
        abandoned: new Map(),
        request: undefined,
        covered: false,
        problem: '',
      });
    }
    this.announce();
  }

  curve(run: string): Curve | undefined {
    return this.entries.get(run)?.shown;
  }

  /** Points that are stored and no part of the run's curve, a curve for each attempt. */
  abandoned(run: string): Curve[] {
    return [...(this.entries.get(run)?.abandoned.values() ?? [])];
  }

  /** True while a part of the curve is still on its way. */
  loading(run: string): boolean {
    const entry = this.entries.get(run);
    return entry?.next !== undefined;
  }

  problem(run: string): string {
    return this.entries.get(run)?.problem ?? '';
  }

  /** From now on the event stream misses nothing of these runs. */
  covered(runs: readonly string[]): void {
    for (const run of runs) {
      const entry = this.entries.get(run);
      if (!entry || entry.covered) continue;
      entry.covered = true;
      if (entry.next) this.read(run, entry);
    }
  }

  /** Events were missed; what is drawn stays until its successor is there. */
  reset(): void {
    for (const entry of this.entries.values()) {
      entry.request?.abort();
      entry.request = undefined;
      entry.covered = false;
      entry.next = new Curve();
    }
  }

  takeEvent(event: StreamEvent): void {
    const run = runOf(event);
    const entry = this.entries.get(run);
    if (!entry) return;
    const curves = entry.next ? [entry.shown, entry.next] : [entry.shown];
    switch (event.kind) {
      case 'points': {
        const columns: typeof event.columns = {};
        for (const name of this.names) {
          const column = event.columns[name];
          if (column) columns[name] = column;
        }
        for (const curve of curves) curve.addLive(event.attempt, columns);
        this.announce();
        return;
      }
      case 'attempt': {
        const resumed = Number(event.attempt.resumedFromStep ?? 0);
        const changed = curves.map((c) => c.beginAttempt(event.attempt.number ?? 1, resumed));
        // The server knows the counts of a curve that was cut back; here they may be thinned.
        if (changed.includes(true)) this.readAgain(run, entry);
        this.announce();
        return;
      }
      case 'gap':
        this.readAgain(run, entry);
        return;
      case 'end': {
        // The curve is complete now, or this page has lost something: look.
        if (!this.names.includes('loss')) return; // others need not reach the last step
        const last = Number(event.run.progress?.step ?? 0);
        const held = entry.shown.series.get('loss')?.lastStep ?? 0;
        if (!entry.next && held < last) this.readAgain(run, entry);
        return;
      }
    }
  }

  private readAgain(run: string, entry: Entry): void {
    entry.next = new Curve();
    if (entry.covered) this.read(run, entry);
  }

  private read(run: string, entry: Entry): void {
    entry.request?.abort();
    const request = new AbortController();
    entry.request = request;
    const attempt = this.source.latestAttempt(run);
    Promise.all([
      this.source.readSeries(run, request.signal),
      this.readAbandoned(run, entry, request.signal),
    ]).then(
      ([columns, abandoned]) => {
        if (entry.request !== request || !entry.next) return;
        entry.abandoned = abandoned;
        entry.next.setHistory(columns);
        entry.next.beginAttempt(attempt, Number.POSITIVE_INFINITY);
        entry.shown = entry.next;
        entry.next = undefined;
        entry.request = undefined;
        entry.problem = '';
        this.announce();
      },
      (error: unknown) => {
        if (entry.request !== request) return;
        if (error instanceof ApiError && error.code === 404) {
          this.source.missing(run);
          return;
        }
        entry.problem = error instanceof Error ? error.message : String(error);
        this.announce();
        setTimeout(() => {
          if (entry.request === request) this.read(run, entry);
        }, retryMilliseconds);
      },
    );
  }

  private async readAbandoned(
    run: string,
    entry: Entry,
    signal: AbortSignal,
  ): Promise<Map<string, Curve>> {
    const read = this.source.abandonedParts(run).map(async (part) => {
      const key = `${part.attempt} from ${part.from}`;
      let curve = entry.abandoned.get(key);
      if (!curve) {
        curve = new Curve();
        curve.setHistory(await this.source.readSeries(run, signal, part));
      }
      return [key, curve] as const;
    });
    return new Map(await Promise.all(read));
  }

  private announce(): void {
    if (this.announced) return;
    this.announced = true;
    this.soon(() => {
      this.announced = false;
      this.version.value++;
    });
  }
}

// A hidden page gets no frames; its curves may wait, but not for ever.
function nextFrame(work: () => void): void {
  if (document.visibilityState === 'visible') requestAnimationFrame(work);
  else setTimeout(work, 1000);
}
