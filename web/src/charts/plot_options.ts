// How uPlot is to draw a chart.
import type uPlot from 'uplot';
import { linearRange, linearTicks, logRange, logTicks } from './axes';
import type { PlotContent, PlotLine } from './plot_content';
import { xTick, yTick } from './tick_text';

interface Chart {
  size: { width: number; height: number };
  style: CSSStyleDeclaration;
  /** What is drawn at the moment; its shape stays the same for the life of the options. */
  content(): PlotContent;
  indexAt(line: number, index: number): number | null;
  /** `isPointer`: it is the pointer over this very chart, and not a chart beside it, that moved. */
  cursor(index: number | undefined, isPointer: boolean): void;
  zoom(from: number, to: number): void;
  unzoom(): void;
  draw(plot: uPlot): void;
}

/** Room for half of the last label. */
export const rightMargin = 24;

const noRange: [number, number] = [0.1, 10];
const font = '11px system-ui, sans-serif';

// There is no half step: 1, 2, 5, 10, ...
const wholeIncrements = Array.from({ length: 16 }, (_, exponent) =>
  [1, 2, 5].map((mantissa) => mantissa * 10 ** exponent),
).flat();

// Milliseconds that make round times.
const timeIncrements = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5,
  36e5, 72e5, 216e5, 432e5, 864e5, 1728e5, 6048e5,
];

export function plotOptions(chart: Chart): uPlot.Options {
  const { bands, lines } = chart.content();
  return {
    width: Math.max(50, chart.size.width),
    height: Math.max(50, chart.size.height),
    padding: [8, rightMargin, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.3 },
    cursor: cursorOptions(chart),
    scales: { x: { time: false, range: () => chart.content().range }, y: yScale(chart) },
    axes: axes(chart),
    series: [{}, ...lines.map(seriesOptions)],
    bands: bands.map(({ high, low, colour }) => ({
      series: [high + 1, low + 1] as uPlot.Band.Bounds,
      fill: `${colour}2e`,
    })),
    hooks: {
      setCursor: [(plot) => chart.cursor(plot.cursor.idx ?? undefined, Boolean(plot.cursor.event))],
      setSelect: [(plot) => select(plot, chart)],
      draw: [(plot) => chart.draw(plot)],
    },
  };
}

function seriesOptions({ look, kind }: PlotLine): uPlot.Series {
  // Not by `alpha`, which uPlot sets itself when a line is highlighted.
  const stroke =
    kind === 'curve' ? look.colour : kind === 'edge' ? 'transparent' : `${look.colour}40`;
  return {
    stroke,
    width: 1.5,
    ...(look.dash ? { dash: look.dash } : {}),
    points: kind === 'curve' ? { space: 24, size: 5 } : { show: false },
  };
}

function cursorOptions(chart: Chart): uPlot.Cursor {
  return {
    y: false,
    sync: { key: 'runs', setSeries: false },
    dataIdx: (_plot, series, index) => chart.indexAt(series - 1, index),
    drag: { x: true, y: false, setScale: false },
    points: { size: 6 },
    focus: { prox: -1 },
    bind: {
      dblclick: () => () => {
        chart.unzoom();
        return null;
      },
    },
  };
}

function yScale(chart: Chart): uPlot.Scale {
  if (chart.content().y === 'linear') {
    return {
      range: (_plot, low, high) => (Number.isFinite(low) ? linearRange(low, high) : noRange),
    };
  }
  return {
    distr: 3,
    range: (_plot, low, high) => (low > 0 && Number.isFinite(high) ? logRange(low, high) : noRange),
  };
}

function axes(chart: Chart): uPlot.Axis[] {
  const grid = chart.style.getPropertyValue('--line').trim();
  const both = {
    stroke: chart.style.getPropertyValue('--secondary').trim(),
    font,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1, size: 4 },
  };
  const { x, y } = chart.content();
  return [
    {
      ...both,
      size: 28,
      gap: 3,
      incrs: x === 'time' ? timeIncrements : wholeIncrements,
      ...(x === 'step' ? {} : { space: 70 }),
      values: (_plot, ticks) => ticks.map((tick) => xTick(tick, x)),
    },
    {
      ...both,
      size: 52,
      gap: 4,
      splits: (plot, _axis, low, high) =>
        y === 'log' ? logTicks(low, high) : linearTicks(low, high, plot.height / 50),
      filter: (_plot, ticks) => ticks,
      values: (_plot, ticks) => ticks.map((tick) => (tick === null ? '' : yTick(tick))),
    },
  ];
}

function select(plot: uPlot, chart: Chart): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const from = Math.max(0, Math.floor(plot.posToVal(left, 'x')));
  const to = Math.ceil(plot.posToVal(left + width, 'x'));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (to > from) chart.zoom(from, to);
}
