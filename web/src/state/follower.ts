// Series that a view wants besides those that every view draws: read and kept up to date by the
// same stream, until the view is left.
import type { SeriesAnswer, StreamEvent } from '../api/events';
import { CurveSet } from './curve_set';
import { CurveStore } from './curve_store';
import type { AbandonedPart } from './lineage';

/** What is wanted of a run's series; everything where nothing is said. */
export interface SeriesPart {
  attempt?: number;
  from?: number;
  to?: number;
}

/** What followers need of the page. */
export interface FollowedPage {
  readSeries(
    run: string,
    names: readonly string[],
    maxPoints: number,
    signal: AbortSignal,
    part?: SeriesPart,
  ): Promise<Record<string, SeriesAnswer>>;
  abandonedParts(run: string): AbandonedPart[];
  latestAttempt(run: string): number;
  missing(run: string): void;
  /** The runs of some follower are others now. */
  rewatch(): void;
}

// Of what an attempt left behind, which is drawn faintly.
const maxAbandonedPoints = 500;

export class Follower {
  readonly curves: CurveSet;
  runs: readonly string[] = [];

  constructor(
    private readonly page: FollowedPage,
    private readonly names: readonly string[],
    maxPoints: number,
    private readonly onStop: (follower: Follower) => void = () => undefined,
  ) {
    const store = new CurveStore(
      {
        readSeries: (run, signal, part) =>
          page.readSeries(run, names, part ? maxAbandonedPoints : maxPoints, signal, part),
        abandonedParts: (run) => page.abandonedParts(run),
        latestAttempt: (run) => page.latestAttempt(run),
        missing: (run) => page.missing(run),
      },
      undefined,
      names,
    );
    this.curves = new CurveSet(store, (run, range, signal) =>
      page.readSeries(run, names, maxPoints, signal, range),
    );
  }

  /** Keeps the series of exactly these runs. */
  keep(runs: readonly string[]): void {
    const wanted = this.names.length > 0 ? runs : [];
    if (wanted.join() === this.runs.join()) return;
    this.runs = [...wanted];
    this.curves.store.keep(wanted);
    this.page.rewatch();
  }

  takeEvent(event: StreamEvent): void {
    this.curves.store.takeEvent(event);
    if (event.kind === 'attempt') this.curves.forget(event.run);
  }

  stop(): void {
    this.onStop(this);
    this.keep([]);
    this.curves.stop();
  }
}
