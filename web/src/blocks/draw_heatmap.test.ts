import { describe, expect, it } from 'vitest';
import { SvgPen } from '../charts/svg_pen';
import { byStep } from '../series/x_axis';
import { drawColourBar, drawHeatmap, type HeatmapScene, placeAt, plotBox } from './draw_heatmap';
import { blockGrid, colourRange } from './grid';
import { blocksOf } from './metrics';
import { brokenColour, hex, offScaleColour } from './viridis';

const [width, height] = [476, 136];
const ink = { text: '#555', line: '#ccc' };

function scene(rows: number[][]): HeatmapScene {
  const curves = rows.map((values) => ({ steps: values.map((_, index) => 10 * index), values }));
  const grid = blockGrid(curves, { from: 0, to: 1000 }, 1000);
  return {
    grid,
    blocks: blocksOf({ layers: String(rows.length) }),
    colours: colourRange(grid.values, 'log'),
    scale: 'log',
    range: [0, 20],
    x: 'step',
    xScale: byStep,
  };
}

function drawn(rows: number[][]) {
  const pen = new SvgPen();
  drawHeatmap(pen, width, height, scene(rows), ink);
  const svg = pen.content();
  const cells = [
    ...svg.matchAll(/<rect x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)" fill="(#.{6})"/g),
  ];
  return {
    cells: cells.map(([, x, y, w, h, fill]) => ({
      x: Number(x),
      y: Number(y),
      w: Number(w),
      h: Number(h),
      fill,
    })),
  };
}

describe('drawHeatmap', () => {
  it('has the input at the bottom and fills the plot without seams', () => {
    const box = plotBox(width, height);
    const { cells } = drawn([
      [1, 2, 3],
      [4, 5, 100],
    ]);
    expect(cells.length).toBe(6);
    const [first] = cells;
    expect((first?.y ?? 0) + (first?.h ?? 0)).toBe(box.top + box.height);
    const bottom = cells.slice(0, 3);
    expect(bottom.map(({ w }) => w).reduce((sum, w) => sum + w)).toBe(box.width);
    bottom.slice(1).forEach((cell, index) => {
      const before = bottom[index] as { x: number; w: number };
      expect(cell.x).toBe(before.x + before.w);
    });
    expect(cells[0]?.fill).toBe('#440154');
    expect(cells[5]?.fill).toBe('#fde725');
  });
  it('shows what has no place on the scale in colours of its own', () => {
    const { cells } = drawn([[1, Number.NaN, 0]]);
    expect(cells.slice(1).map(({ fill }) => fill)).toEqual([
      hex(brokenColour),
      hex(offScaleColour),
    ]);
  });
});

describe('the colour bar', () => {
  it('goes from the lowest colour to the highest, with their values', () => {
    const pen = new SvgPen();
    drawColourBar(pen, 0, 0, scene([[1, 100]]), ink);
    const svg = pen.content();
    const fills = [...svg.matchAll(/<rect [^>]*fill="(#.{6})"/g)].map(([, fill]) => fill);
    expect(fills[0]).toBe('#440154');
    expect(fills.at(-1)).toBe('#fde725');
    expect(new Set(fills).size).toBeGreaterThan(20);
    expect([...svg.matchAll(/>([^<]+)<\/text>/g)].map(([, text]) => text)).toEqual([
      '1',
      '100 (log)',
    ]);
  });
});

describe('placeAt', () => {
  it('is the block and the step below the pointer', () => {
    const made = scene([[1], [2]]);
    const box = plotBox(width, height);
    const at = (x: number, y: number) =>
      placeAt(box.left + x * box.width, box.top + y * box.height, width, height, made);
    expect(at(0.5, 0.9)).toEqual({ row: 0, step: 10 });
    expect(at(0, 0)).toEqual({ row: 1, step: 0 });
    expect(at(1.1, 0.5)).toBeUndefined();
    expect(at(0.5, 1)).toBeUndefined();
  });
});
