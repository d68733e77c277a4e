// What one chart draws, in numbers: made by lines.ts, drawn by curve_plot.ts and svg_chart.ts.
import type { XMode } from '../series/x_axis';
import type { OffAxisPoint, YMode } from './chart_data';
import type { LineLook } from './palette';

export interface PlotLine {
  /** The run, or group of runs, that it belongs to: what is highlighted together. */
  key: string;
  name: string;
  look: LineLook;
  /**
   * curve: a run's own; raw: behind its smoothed one; left: what an attempt left behind; edge: of a
   * band. Only a curve has a point under the cursor.
   */
  kind: 'curve' | 'raw' | 'left' | 'edge';
  values: (number | null | undefined)[];
  marks: OffAxisPoint[];
  /** Where the loss jumped. */
  spikes: { x: number; value: number }[];
  /** First place with a value that is not finite. */
  badX: number | undefined;
}

/** The area between two lines, by their places in `lines`. */
export interface PlotBand {
  high: number;
  low: number;
  colour: string;
}

export interface PlotContent {
  xs: number[];
  lines: PlotLine[];
  bands: PlotBand[];
  range: [number, number];
  x: XMode;
  y: YMode;
}

export const emptyContent: PlotContent = {
  xs: [],
  lines: [],
  bands: [],
  range: [0, 1],
  x: 'step',
  y: 'log',
};
