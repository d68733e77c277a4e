// Marks for points that are not finite, at the edge of the plot that they lie beyond:
// +Infinity is a triangle at the top that points up, -Infinity one at the bottom that points down,
// and NaN, which is on no side, a cross at the bottom. A ring is around the points where the loss
// jumped, and a flash is where the first bad step is.
import uPlot from 'uplot';
import type { NonFinitePoint } from './chart_data';
import type { PlotLine } from './plot_content';

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
  for (const { at: x, value } of spreadMarks(plot, points, size)) {
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
  for (const { x, value } of points) {
    const at = plot.valToPos(x, 'x', true);
    if (at < left || at > left + width || at - (last.get(value) ?? -Infinity) < distance) continue;
    last.set(value, at);
    yield { at, value };
  }
}

/** A ring around each of these points. */
export function drawSpikes(
  plot: uPlot,
  colour: string,
  points: readonly { x: number; value: number }[],
): void {
  const { ctx, bbox } = plot;
  const radius = 1.25 * markSize * uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * uPlot.pxRatio;
  for (const { x, value } of points) {
    const [left, top] = [plot.valToPos(x, 'x', true), plot.valToPos(value, 'y', true)];
    if (left < bbox.left || left > bbox.left + bbox.width || !Number.isFinite(top)) continue;
    ctx.beginPath();
    ctx.arc(left, top, radius, 0, 2 * Math.PI);
    ctx.stroke();
  }
  ctx.restore();
}

/** ⚡ by the axis, in the run's colour, where its values stop being finite. */
export function drawBadSteps(plot: uPlot, lines: readonly PlotLine[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${13 * uPlot.pxRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'bottom';
  for (const { badX, look } of lines) {
    if (badX === undefined) continue;
    const x = plot.valToPos(badX, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.fillStyle = look.colour;
    ctx.fillText('⚡\uFE0E', x, bbox.top + bbox.height - 2 * markSize * uPlot.pxRatio);
  }
  ctx.restore();
}
