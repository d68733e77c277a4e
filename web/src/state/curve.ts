// The curve of one run as a page holds it: what was read from the server (history) and what came
// through the event stream since (live), put together so that no step is missing and none is twice.
//
// The rules (a run's default curve follows its latest attempt):
//   - steps of a series rise; a live point at or below the last step held is a repeat, and dropped;
//   - a new attempt cuts the curve back to the step it resumed from;
//   - points of an attempt before the latest are no part of the curve.
import { type SeriesAnswer, toNumber, type WireColumn } from '../api/events';
import { thin } from './thin';

/** One series: parallel arrays, non-finite values as they are. Read-only for charts. */
export class Series {
  steps: number[] = [];
  values: number[] = [];
  /** Points there are, of which the arrays may hold a part. */
  total = 0;
  nonFinite = 0;
  firstNonFiniteStep: number | undefined;
  /** Finite points held that no log axis can show: zero or negative. */
  offLogAxis = 0;

  get lastStep(): number {
    return this.steps.at(-1) ?? 0;
  }

  /**
   * The point at this step or, where points are thinned away, the last one held before; undefined
   * where there is none, and beyond the curve's end.
   */
  pointAt(step: number): { step: number; value: number } | undefined {
    const index = this.indexAtOrBefore(step);
    const [found, value] = [this.steps[index], this.values[index]];
    if (found === undefined || value === undefined || step > this.lastStep) return undefined;
    const isWhole = this.total === this.steps.length;
    return found === step || !isWhole ? { step: found, value } : undefined;
  }

  /** The value of the point at this very step, if it is held. */
  exactlyAt(step: number): number | undefined {
    const index = this.indexAtOrBefore(step);
    return this.steps[index] === step ? this.values[index] : undefined;
  }

  /** There is no point at this step, though there are some before and after it. */
  lacks(step: number): boolean {
    const isWhole = this.total === this.steps.length;
    const inside = step > (this.steps[0] ?? Infinity) && step < this.lastStep;
    return isWhole && inside && this.exactlyAt(step) === undefined;
  }

  indexAtOrBefore(step: number): number {
    let low = 0;
    let high = this.steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.steps[middle] as number) <= step) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  append(step: number, value: number): void {
    if (this.steps.length > 0 && step <= this.lastStep) return;
    this.steps.push(step);
    this.values.push(value);
    this.total++;
    if (!Number.isFinite(value)) {
      this.nonFinite++;
      this.firstNonFiniteStep ??= step;
    } else if (value <= 0) {
      this.offLogAxis++;
    }
  }

  cutAfter(step: number): void {
    const keep = this.indexAtOrBefore(step) + 1;
    const cut = this.values.slice(keep);
    this.steps.length = keep;
    this.values.length = keep;
    this.total -= cut.length;
    this.nonFinite -= cut.filter((value) => !Number.isFinite(value)).length;
    this.offLogAxis -= cut.filter((value) => Number.isFinite(value) && value <= 0).length;
    if (this.nonFinite <= 0) this.firstNonFiniteStep = undefined;
  }
}

// A tab stays light however long a run is: above the limit, the held points are thinned.
const heldLimit = 8_000;
const thinnedTo = 4_000;

export class Curve {
  readonly series = new Map<string, Series>();
  attempt = 0;

  addLive(attempt: number, columns: Record<string, WireColumn>): void {
    if (attempt < this.attempt) return;
    this.attempt = attempt;
    for (const [name, column] of Object.entries(columns)) {
      const series = this.seriesOf(name);
      column.steps.forEach((step, index) => {
        series.append(step, toNumber(column.values[index] ?? 'NaN'));
      });
      if (series.steps.length > heldLimit) {
        ({ steps: series.steps, values: series.values } = thin(
          series.steps,
          series.values,
          thinnedTo,
        ));
      }
    }
  }

  /** An attempt that is not the latest changes nothing. */
  beginAttempt(attempt: number, resumedFromStep: number): boolean {
    if (attempt <= this.attempt) return false;
    const isFirst = this.attempt === 0 && this.series.size === 0;
    this.attempt = attempt;
    for (const series of this.series.values()) series.cutAfter(resumedFromStep);
    return !isFirst;
  }

  /** Takes a history, and puts after it the live points that are newer than it. */
  setHistory(columns: Record<string, SeriesAnswer>): void {
    for (const [name, column] of Object.entries(columns)) {
      const live = this.series.get(name);
      const series = new Series();
      column.steps.forEach((step, index) => {
        series.append(step, toNumber(column.values[index] ?? 'NaN'));
      });
      // Thinned away points count as well; non-finite ones are never thinned away unseen.
      series.total = column.totalPoints;
      series.nonFinite = Math.max(series.nonFinite, column.nonFinitePoints);
      series.firstNonFiniteStep = column.firstNonFiniteStep ?? series.firstNonFiniteStep;
      live?.steps.forEach((step, index) => {
        series.append(step, live.values[index] as number);
      });
      this.series.set(name, series);
    }
  }

  private seriesOf(name: string): Series {
    let series = this.series.get(name);
    if (!series) {
      series = new Series();
      this.series.set(name, series);
    }
    return series;
  }
}
