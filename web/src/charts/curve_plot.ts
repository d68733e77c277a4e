// One chart: wraps uPlot, which draws on a canvas and knows nothing of runs.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { firstAtOrAfter } from '../series/points';
import { drawBadSteps, drawMarks, drawSpikes } from './marks';
import { emptyContent, type PlotContent } from './plot_content';
import { plotOptions } from './plot_options';

export interface PlotEvents {
  /** The cursor is at this place on the x axis; undefined: nowhere. */
  cursor(x: number | undefined): void;
  zoom(from: number, to: number): void;
  unzoom(): void;
}

// The chart whose cursor was moved last: those beside it follow, each to a point of its own that is
// near, and do not say where the cursor is.
let leader: CurvePlot | undefined;

export class CurvePlot {
  content: PlotContent = emptyContent;
  private plot: uPlot | undefined;
  private shape = '';
  private highlighted: string | undefined;
  /** Of each line, the index of its last point. */
  private ends: number[] = [];

  constructor(
    private readonly parent: HTMLElement,
    private readonly events: PlotEvents,
  ) {}

  /** Draws; `theme` says when the colours of the page have changed. */
  show(content: PlotContent, theme: string): void {
    this.content = content;
    this.ends = content.lines.map(({ values }) => values.findLastIndex((v) => v !== undefined));
    const looks = content.lines.map(
      ({ look, kind, key }) => `${key} ${look.colour}${look.dash ?? ''} ${kind}`,
    );
    const bands = content.bands.map(({ high, low, colour }) => `${high}-${low}${colour}`);
    const shape = [theme, content.x, content.y, ...looks, ...bands].join();
    if (this.plot && shape === this.shape) {
      this.plot.setData(this.data());
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data(), this.parent);
    this.highlight(this.highlighted);
  }

  resize(): void {
    const { clientWidth: width, clientHeight: height } = this.parent;
    if (width > 0 && height > 0) this.plot?.setSize({ width, height });
  }

  /** Draws all lines but those of `key` faintly; undefined: all alike. */
  highlight(key: string | undefined): void {
    this.highlighted = key;
    const line = this.content.lines.findIndex((one) => one.key === key && one.kind === 'curve');
    this.plot?.setSeries(line < 0 ? null : line + 1, { focus: true });
  }

  /** Moves the cursor by a number of the points that are seen. */
  moveCursor(by: number): void {
    const { plot } = this;
    const { xs, range } = this.content;
    const first = firstAtOrAfter(xs, range[0]);
    const last = xs.findLastIndex((x) => x <= range[1]);
    if (!plot || last < first) return;
    const now = plot.cursor.idx ?? (by > 0 ? first - 1 : last + 1);
    const index = Math.min(last, Math.max(first, now + by));
    leader = this;
    const left = plot.valToPos(xs[index] as number, 'x');
    const top = plot.cursor.top && plot.cursor.top >= 0 ? plot.cursor.top : 10;
    // Told to the other charts as well, which the types do not know of.
    const setCursor: (at: { left: number; top: number }, fire: boolean, publish: boolean) => void =
      plot.setCursor;
    setCursor({ left, top }, true, true);
  }

  /** The canvas with all that is drawn, for a picture of it. */
  canvas(): HTMLCanvasElement | undefined {
    return this.plot?.ctx.canvas;
  }

  destroy(): void {
    if (leader === this) leader = undefined;
    this.plot?.destroy();
    this.plot = undefined;
  }

  // Where a line's point for the cursor is: at its place or the last one before; a line that has
  // ended, or has a gap there, has none.
  private indexAt(line: number, index: number): number | null {
    const found = this.content.lines[line];
    if (!found) return index; // the x axis itself
    if (found.kind !== 'curve' || index > (this.ends[line] ?? -1)) return null;
    let at = index;
    while (at >= 0 && found.values[at] === undefined) at--;
    return at < 0 || found.values[at] === null ? null : at;
  }

  private data(): uPlot.AlignedData {
    return [this.content.xs, ...this.content.lines.map((line) => line.values)];
  }

  private options(): uPlot.Options {
    return plotOptions({
      size: { width: this.parent.clientWidth, height: this.parent.clientHeight },
      style: getComputedStyle(document.documentElement),
      content: () => this.content,
      indexAt: (line, index) => this.indexAt(line, index),
      cursor: (index, isPointer) => {
        if (isPointer) leader = this;
        if (leader !== this) return;
        this.events.cursor(index === undefined ? undefined : this.content.xs[index]);
      },
      zoom: (from, to) => this.events.zoom(from, to),
      unzoom: () => this.events.unzoom(),
      draw: (plot) => this.drawOver(plot),
    });
  }

  private drawOver(plot: uPlot): void {
    for (const { look, marks, spikes } of this.content.lines) {
      drawMarks(plot, look.colour, marks);
      drawSpikes(plot, look.colour, spikes);
    }
    drawBadSteps(plot, this.content.lines);
    // For whoever wants to know what is on the canvas by now, and not only in some store.
    this.parent.dispatchEvent(new CustomEvent('drawn', { detail: plot, bubbles: true }));
  }
}
