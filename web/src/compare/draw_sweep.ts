// The tables of a sweep as a picture and as rows of a file.
import { drawColourBar } from '../blocks/draw_heatmap';
import { type ColourRange, colourShare } from '../blocks/grid';
import { brokenColour, hex, offScaleColour, type Rgb, viridis } from '../blocks/viridis';
import type { Pen } from '../charts/svg_pen';
import { formatValue } from '../format/format';
import type { Cell } from '../series/csv';
import type { SweepGrid } from './sweep_grid';

export interface NamedGrid {
  /** What its runs have in common; empty where there is one table. */
  name: string;
  grid: SweepGrid;
}

/** By the logarithm; what has no place on it is red if it is not finite, and else grey. */
export function sweepColour(value: number, colours: ColourRange): Rgb {
  const share = colourShare(value, colours, 'log');
  if (share !== undefined) return viridis(share);
  return Number.isFinite(value) ? offScaleColour : brokenColour;
}

/** Of letters on it: a contrast of at least 4.5 to 1, by relative luminance. */
export function letterColour(colour: Rgb): string {
  const [red = 0, green = 0, blue = 0] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}

const cell = { width: 84, height: 24, left: 120 };

/** Draws the tables below each other, with the colour bar; returns the size of it all. */
export function drawSweep(
  pen: Pen,
  tables: readonly NamedGrid[],
  axes: string,
  colours: ColourRange,
  text: string,
): { width: number; height: number } {
  let top = 0;
  let columns = 0;
  const write = (words: string, x: number, align: CanvasTextAlign, colour: string) => {
    pen.textAlign = align;
    pen.textBaseline = 'middle';
    pen.fillStyle = colour;
    pen.fillText(words, x, top + cell.height / 2);
  };
  for (const { name, grid } of tables) {
    columns = Math.max(columns, grid.columns.length);
    const middle = (column: number) => cell.left + (column + 0.5) * cell.width;
    if (name !== '') {
      write(name, 12, 'left', text);
      top += cell.height;
    }
    write(axes, cell.left - 8, 'right', text);
    grid.columns.forEach((words, column) => {
      write(words, middle(column), 'center', text);
    });
    grid.cells.forEach((row, index) => {
      top += cell.height;
      write(grid.rows[index] ?? '', cell.left - 8, 'right', text);
      row.forEach((one, column) => {
        if (!one?.spread) return;
        const colour = sweepColour(one.spread.median, colours);
        pen.fillStyle = hex(colour);
        pen.fillRect(cell.left + column * cell.width, top, cell.width, cell.height);
        write(formatValue(one.spread.median), middle(column), 'center', letterColour(colour));
      });
    });
    top += 1.5 * cell.height;
  }
  drawColourBar(pen, cell.left - 48, top, { colours, scale: 'log' }, { text, line: text });
  const width = Math.max(360, cell.left + columns * cell.width + 16);
  return { width, height: top + cell.height };
}

/** A row a cell; `part` is what the runs of its table have in common. */
export function sweepRows(tables: readonly NamedGrid[]): Cell[][] {
  return tables.flatMap(({ name, grid }) =>
    grid.cells.flat().flatMap((one) => {
      if (!one) return [];
      const { median, low, high } = one.spread ?? {};
      const names = one.runs.map((run) => run.displayName ?? '').join('; ');
      return [[name, one.row, one.column, median, low, high, one.runs.length, names]];
    }),
  );
}
