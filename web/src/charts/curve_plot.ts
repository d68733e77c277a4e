// One chart: wraps uPlot, which draws on a canvas and knows nothing of runs.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatCount, formatValue } from '../format/format';
import { logRange, logTicks } from './axes';
import type { NonFinitePoint } from './chart_data';
import { drawMarks, markSize } from './marks';
import type { LineLook } from './palette';

export interface PlotLine {
  look: LineLook;
  /** Drawn faintly, and without a point under the cursor. */
  faint: boolean;
  values: (number | null | undefined)[];
  marks: NonFinitePoint[];
  /** First step with a value that is not finite. */
  badStep: number | undefined;
}

export interface PlotContent {
  steps: number[];
  lines: PlotLine[];
  range: [number, number];
}

export interface PlotEvents {
  cursor(step: number | undefined): void;
  zoom(from: number, to: number): void;
  unzoom(): void;
}

const noRange: [number, number] = [0.1, 10];

// There is no half step: 1, 2, 5, 10, ...
const wholeIncrements = Array.from({ length: 16 }, (_, exponent) =>
  [1, 2, 5].map((mantissa) => mantissa * 10 ** exponent),
).flat();

export class CurvePlot {
  private plot: uPlot | undefined;
  private content: PlotContent = { steps: [], lines: [], range: [0, 1] };
  private shape = '';
  private highlighted: number | undefined;

  constructor(
    private readonly parent: HTMLElement,
    private readonly events: PlotEvents,
  ) {}

  /** Draws; `theme` says when the colours of the page have changed. */
  show(content: PlotContent, theme: string): void {
    this.content = content;
    const looks = content.lines.map(
      ({ look, faint }) => `${look.colour}${look.dash ?? ''}${faint ? ' faint' : ''}`,
    );
    const shape = `${theme} ${looks.join()}`;
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

  /** Draws all lines but this one faintly; undefined: all alike. */
  highlight(line: number | undefined): void {
    this.highlighted = line;
    this.plot?.setSeries(line === undefined ? null : line + 1, { focus: true });
  }

  /** Moves the cursor by a number of steps that are drawn. */
  moveCursor(by: number): void {
    const plot = this.plot;
    const last = this.content.steps.length - 1;
    if (!plot || last < 0) return;
    const now = plot.cursor.idx ?? (by > 0 ? -1 : last + 1);
    const index = Math.min(last, Math.max(0, now + by));
    const left = plot.valToPos(this.content.steps[index] as number, 'x');
    plot.setCursor({ left, top: plot.cursor.top && plot.cursor.top >= 0 ? plot.cursor.top : 10 });
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = undefined;
  }

  // Where a line's point for the cursor is: at its step or the last one before; a line that has
  // ended, or has a gap there, has none.
  private indexAt(line: number, index: number): number | null {
    const values = this.content.lines[line]?.values;
    if (!values) return index; // the x axis itself
    if (this.content.lines[line]?.faint) return null;
    let at = index;
    while (at >= 0 && values[at] === undefined) at--;
    if (at < 0 || values[at] === null) return null;
    if (at < index && !values.slice(index).some((value) => value !== undefined)) return null;
    return at;
  }

  private data(): uPlot.AlignedData {
    return [this.content.steps, ...this.content.lines.map((line) => line.values)];
  }

  private options(): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue('--secondary').trim();
    const grid = style.getPropertyValue('--line').trim();
    const font = '11px system-ui, sans-serif';
    const axis = {
      stroke: text,
      font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1, size: 4 },
    };
    return {
      width: Math.max(50, this.parent.clientWidth),
      height: Math.max(50, this.parent.clientHeight),
      padding: [8, 12, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.3 },
      cursor: {
        y: false,
        sync: { key: 'runs', setSeries: false },
        dataIdx: (_plot, series, index) => this.indexAt(series - 1, index),
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        focus: { prox: -1 },
        bind: {
          dblclick: () => () => {
            this.events.unzoom();
            return null;
          },
        },
      },
      scales: {
        x: { time: false, range: () => this.content.range },
        y: {
          distr: 3,
          range: (_plot, low, high) =>
            low > 0 && Number.isFinite(high) ? logRange(low, high) : noRange,
        },
      },
      axes: [
        {
          ...axis,
          size: 28,
          gap: 3,
          incrs: wholeIncrements,
          values: (_plot, ticks) => ticks.map(formatCount),
        },
        {
          ...axis,
          size: 52,
          gap: 4,
          splits: (_plot, _axis, low, high) => logTicks(low, high),
          filter: (_plot, ticks) => ticks,
          values: (_plot, ticks) => ticks.map((tick) => (tick === null ? '' : formatTick(tick))),
        },
      ],
      series: [
        {},
        ...this.content.lines.map(({ look, faint }) => ({
          // Not by `alpha`, which uPlot sets itself when a line is highlighted.
          stroke: faint ? `${look.colour}40` : look.colour,
          width: 1.5,
          ...(look.dash ? { dash: look.dash } : {}),
          points: { space: 24, size: 5 },
        })),
      ],
      hooks: {
        setCursor: [
          (plot) => {
            const index = plot.cursor.idx;
            this.events.cursor(typeof index === 'number' ? this.content.steps[index] : undefined);
          },
        ],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            const from = Math.max(0, Math.floor(plot.posToVal(left, 'x')));
            const to = Math.ceil(plot.posToVal(left + width, 'x'));
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            if (to > from) this.events.zoom(from, to);
          },
        ],
        draw: [
          (plot) => {
            for (const { look, marks } of this.content.lines) drawMarks(plot, look.colour, marks);
            this.drawBadSteps(plot);
            // For whoever wants to know what is on the canvas by now, and not only in some store.
            this.parent.dispatchEvent(new CustomEvent('drawn', { detail: plot, bubbles: true }));
          },
        ],
      },
    };
  }

  // ⚡ by the axis, in the run's colour, where its values stop being finite.
  private drawBadSteps(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${13 * uPlot.pxRatio}px system-ui, sans-serif`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'bottom';
    for (const line of this.content.lines) {
      if (line.badStep === undefined) continue;
      const x = plot.valToPos(line.badStep, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.fillStyle = line.look.colour;
      ctx.fillText('⚡\uFE0E', x, bbox.top + bbox.height - 2 * markSize * uPlot.pxRatio);
    }
    ctx.restore();
  }
}

// Decades as 0.01, 1, 100; far ones as 1e-6.
function formatTick(value: number): string {
  if (value >= 1e-4 && value < 1e5) return String(Number(value.toPrecision(2)));
  return formatValue(value).replace(/\.00e/, 'e');
}
