// Draws a grid of blocks and steps on a canvas. The margins are those of the charts (plot_options.ts), so
// that a step is at the same place in all of them.
import { linearTicks } from '../charts/axes';
import { rightMargin } from '../charts/plot_options';
import type { Pen } from '../charts/svg_pen';
import { xTick, yTick } from '../charts/tick_text';
import type { XMode, XScale } from '../series/x_axis';
import { type BlockGrid, type ColourRange, colourShare } from './grid';
import type { Block } from './metrics';
import { brokenColour, hex, offScaleColour, viridis } from './viridis';

export const margins = { left: 52, right: rightMargin, top: 8, bottom: 28 };

export interface HeatmapScene {
  grid: BlockGrid;
  blocks: readonly Block[];
  colours: ColourRange;
  scale: 'log' | 'linear';
  /** What the x axis spans, in its own units. */
  range: [number, number];
  x: XMode;
  xScale: XScale;
}

export interface Ink {
  text: string;
  line: string;
}

export function colourOf(value: number, scene: Pick<HeatmapScene, 'colours' | 'scale'>): string {
  const share = colourShare(value, scene.colours, scene.scale);
  if (share !== undefined) return hex(viridis(share));
  return hex(Number.isFinite(value) ? offScaleColour : brokenColour);
}

export function drawHeatmap(
  context: Pen,
  width: number,
  height: number,
  scene: HeatmapScene,
  ink: Ink,
): void {
  context.clearRect(0, 0, width, height);
  const inside = plotBox(width, height);
  drawCells(context, inside, scene);
  context.strokeStyle = ink.line;
  context.strokeRect(inside.left - 0.5, inside.top - 0.5, inside.width + 1, inside.height + 1);
  context.fillStyle = ink.text;
  context.font = '11px system-ui, sans-serif';
  drawBlockLabels(context, inside, scene.blocks);
  context.textAlign = 'center';
  context.textBaseline = 'top';
  for (const tick of linearTicks(...scene.range, inside.width / 60)) {
    const at = inside.left + inside.width * share(tick, scene.range);
    context.fillText(xTick(tick, scene.x), at, inside.top + inside.height + 7);
  }
}

const bar = { width: 128, height: 10, stops: 32 };

/** What the colours mean: from the lowest value to the highest. */
export function drawColourBar(
  context: Pen,
  left: number,
  top: number,
  { colours, scale }: Pick<HeatmapScene, 'colours' | 'scale'>,
  ink: Ink,
): void {
  const room = 48; // for a number
  const each = bar.width / bar.stops;
  for (let stop = 0; stop < bar.stops; stop++) {
    context.fillStyle = hex(viridis(stop / (bar.stops - 1)));
    context.fillRect(left + room + stop * each, top, each, bar.height);
  }
  context.fillStyle = ink.text;
  context.textBaseline = 'middle';
  const middle = top + bar.height / 2;
  context.textAlign = 'right';
  context.fillText(yTick(colours.low), left + room - 6, middle);
  context.textAlign = 'left';
  context.fillText(`${yTick(colours.high)} (${scale})`, left + room + bar.width + 6, middle);
}

export function plotBox(width: number, height: number) {
  return {
    left: margins.left,
    top: margins.top,
    width: Math.max(1, width - margins.left - margins.right),
    height: Math.max(1, height - margins.top - margins.bottom),
  };
}
export type Box = ReturnType<typeof plotBox>;

function drawCells(context: Pen, box: Box, scene: HeatmapScene): void {
  const { grid } = scene;
  const edges = columnEdges(scene).map((x) =>
    Math.round(box.left + box.width * Math.min(1, Math.max(0, share(x, scene.range)))),
  );
  for (let row = 0; row < grid.rows; row++) {
    // The input is at the bottom.
    const bottom = Math.round(box.top + box.height * (1 - row / grid.rows));
    const top = Math.round(box.top + box.height * (1 - (row + 1) / grid.rows));
    for (let column = 0; column < grid.steps.length; column++) {
      const value = grid.values[row * grid.steps.length + column];
      const [left, right] = [edges[column] as number, edges[column + 1] as number];
      if (value === undefined || right <= left) continue;
      context.fillStyle = colourOf(value, scene);
      context.fillRect(left, top, right - left, bottom - top);
    }
  }
}

// A column has its step in the middle: it begins and ends half way to its neighbours.
function columnEdges({ grid, xScale }: HeatmapScene): number[] {
  const xs = grid.steps.map((step) => xScale.of(step));
  const edges = xs.slice(1).map((x, index) => (x + (xs[index] as number)) / 2);
  const [first = 0, last = 0] = [xs[0], xs.at(-1)];
  const half = xs.length > 1 ? (last - (xs.at(-2) as number)) / 2 : 0.5;
  return [Math.min(first, 2 * first - (edges[0] ?? first + 0.5)), ...edges, last + half];
}

function drawBlockLabels(context: Pen, box: Box, blocks: readonly Block[]): void {
  const each = Math.max(1, Math.ceil((13 * blocks.length) / box.height));
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  blocks.forEach(({ label }, row) => {
    const isShown = row % each === 0 || row === blocks.length - 1;
    if (!isShown || (row !== blocks.length - 1 && blocks.length - 1 - row < each)) return;
    const at = box.top + box.height * (1 - (row + 0.5) / blocks.length);
    context.fillText(label, box.left - 6, at);
  });
}

function share(x: number, [from, to]: [number, number]): number {
  return to > from ? (x - from) / (to - from) : 0;
}

/** What lies at a place of the canvas, in CSS pixels; undefined outside the plot. */
export function placeAt(
  left: number,
  top: number,
  width: number,
  height: number,
  scene: Pick<HeatmapScene, 'grid' | 'range' | 'xScale'>,
): { row: number; step: number } | undefined {
  const box = plotBox(width, height);
  const [x, y] = [(left - box.left) / box.width, (top - box.top) / box.height];
  if (x < 0 || x > 1 || y < 0 || y >= 1) return undefined;
  const [from, to] = scene.range;
  return {
    row: Math.floor((1 - y) * scene.grid.rows - 1e-9),
    step: Math.floor(scene.xScale.stepAt(from + x * (to - from))),
  };
}
