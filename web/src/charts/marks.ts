// Marks for points that are not finite, at the edge of the plot that they lie beyond:
// +Infinity is a triangle at the top that points up, -Infinity one at the bottom that points down,
// and NaN, which is on no side, a cross at the bottom.
import uPlot from 'uplot';
import type { NonFinitePoint } from './chart_data';

/** Half the width of a mark, in CSS pixels. */
export const markSize = 4;

export function drawMarks(plot: uPlot, colour: string, points: readonly NonFinitePoint[]): void {
  const { ctx, bbox } = plot;
  const size = markSize * uPlot.pxRatio;
  ctx.save();
  ctx.fillStyle = colour;
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * uPlot.pxRatio;
  const bottom = bbox.top + bbox.height;
  for (const { x, value } of spreadMarks(plot, points, size)) {
    ctx.beginPath();
    if (Number.isNaN(value)) {
      ctx.moveTo(x - size, bottom - 2 * size);
      ctx.lineTo(x + size, bottom);
      ctx.moveTo(x + size, bottom - 2 * size);
      ctx.lineTo(x - size, bottom);
      ctx.stroke();
    } else {
      const tip = value > 0 ? bbox.top : bottom;
      const base = value > 0 ? tip + 2 * size : tip - 2 * size;
      ctx.moveTo(x, tip);
      ctx.lineTo(x + size, base);
      ctx.lineTo(x - size, base);
      ctx.fill();
    }
  }
  ctx.restore();
}

// Inside the plot, and no two of a kind so close that they become a bar.
function* spreadMarks(plot: uPlot, points: readonly NonFinitePoint[], distance: number) {
  const { left, width } = plot.bbox;
  const last = new Map<number, number>();
  for (const { step, value } of points) {
    const x = plot.valToPos(step, 'x', true);
    if (x < left || x > left + width || x - (last.get(value) ?? -Infinity) < distance) continue;
    last.set(value, x);
    yield { x, value };
  }
}
