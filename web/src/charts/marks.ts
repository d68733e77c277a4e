// Marks for points that the axis has no place for, at the edge of the plot that they lie beyond:
// +Infinity is a triangle at the top that points up, -Infinity one at the bottom that points down,
// zero and less on a log axis a hollow circle at the bottom, and NaN, which is on no side, a cross
// at the bottom. A ring is around the points where the loss
// jumped, and a flash is where the first bad step is.
import uPlot from 'uplot';
import type { OffAxisPoint } from './chart_data';
import type { PlotLine } from './plot_content';

/** Half the width of a mark, in CSS pixels. */
export const markSize = 4;

export function drawMarks(plot: uPlot, colour: string, points: readonly OffAxisPoint[]): void {
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
    } else if (Number.isFinite(value)) {
      ctx.arc(x, bottom - size, 0.8 * size, 0, 2 * Math.PI);
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
function* spreadMarks(plot: uPlot, points: readonly OffAxisPoint[], distance: number) {
  const { left, width } = plot.bbox;
  const last = new Map<number, number>();
  for (const { x, value } of points) {
    const at = plot.valToPos(x, 'x', true);
    // Zero and less look alike, however small.
    const kind = Number.isFinite(value) ? 0 : value;
    if (at < left || at > left + width || at - (last.get(kind) ?? -Infinity) < distance) continue;
    last.set(kind, at);
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
