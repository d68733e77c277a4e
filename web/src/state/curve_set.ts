// The curves that the charts of a view draw: what is held of each run, and in a zoomed range the
// server's detail of it.
import type { Range, Zoomed } from '../series/zoomed';
import { needsDetail, zoomed } from '../series/zoomed';
import type { Curve, Series } from './curve';
import type { CurveStore } from './curve_store';
import { DetailStore, type ReadRange } from './detail_store';

export class CurveSet {
  private readonly details: DetailStore;

  constructor(
    readonly store: CurveStore,
    readRange: ReadRange,
  ) {
    this.details = new DetailStore(readRange);
  }

  /** Whoever calls this inside an effect is called again when something has changed. */
  depend(): void {
    this.store.version.value;
    this.details.version.value;
  }

  held(run: string, name: string): Series | undefined {
    return this.store.curve(run)?.series.get(name);
  }

  /** `range`: the steps that are shown; undefined: all. */
  zoomed(run: string, name: string, range: Range | undefined): Zoomed | undefined {
    const held = this.held(run, name);
    return held && zoomed(held, this.details.detail(run)?.series.get(name), range);
  }

  abandoned(run: string): Curve[] {
    return this.store.abandoned(run);
  }

  loading(run: string): boolean {
    return this.store.loading(run);
  }

  problem(run: string): string {
    return this.store.problem(run) || this.details.problem(run);
  }

  /** Reads what is missing of these runs in these ranges; call it again whenever they change. */
  readDetail(ranges: ReadonlyMap<string, Range | undefined>): void {
    const wanted = new Map<string, Range>();
    for (const [run, range] of ranges) {
      const series = [...(this.store.curve(run)?.series.values() ?? [])];
      if (range && series.some((one) => needsDetail(one, range))) wanted.set(run, range);
    }
    this.details.show(wanted);
  }

  /** The run's latest attempt is another one now. */
  forget(run: string): void {
    this.details.forget(run);
  }

  stop(): void {
    this.details.show(new Map());
  }
}
