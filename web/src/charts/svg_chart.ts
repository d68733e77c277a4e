// A chart as an SVG text: the same lines, axes and marks that uPlot draws on its canvas.
import { linearRange, linearTicks, logRange, logTicks } from './axes';
import { dashes, type Picture, type PictureColours, pictureOf } from './picture';
import type { PlotContent, PlotLine } from './plot_content';
import { escaped } from './svg_text';
import { xTick, yTick } from './tick_text';

const size = { width: 720, height: 366 };
const plot = { left: 52, top: 6, right: 704, bottom: 336 };

export function svgOf(
  title: string,
  note: string,
  content: PlotContent,
  colours: PictureColours,
): Picture {
  const scale = scales(content);
  const parts = [
    ...gridLines(content, scale, colours),
    ...content.bands.map((band) => bandPath(content, band, scale)),
    ...content.lines.map((line) => linePath(content, line, scale)),
    ...content.lines.flatMap((line) => lineMarks(line, scale)),
  ];
  const legend = content.lines.filter(({ kind }) => kind === 'curve');
  return pictureOf(parts.join('\n'), size.width, size.height, { title, legend, note }, colours);
}

interface Scales {
  x(value: number): number;
  y(value: number): number;
  low: number;
  high: number;
  isInside(x: number): boolean;
}

function scales({ xs, lines, range, y }: PlotContent): Scales {
  const [from, to] = range;
  const isInside = (x: number) => x >= from && x <= to;
  let smallest = Number.POSITIVE_INFINITY;
  let largest = Number.NEGATIVE_INFINITY;
  for (const { values } of lines) {
    values.forEach((value, index) => {
      if (typeof value !== 'number' || !isInside(xs[index] as number)) return;
      smallest = Math.min(smallest, value);
      largest = Math.max(largest, value);
    });
  }
  if (largest < smallest) [smallest, largest] = [0.1, 10];
  const [low, high] = y === 'log' ? logRange(smallest, largest) : linearRange(smallest, largest);
  const place = y === 'log' ? Math.log : (value: number) => value;
  return {
    x: (value) => round(plot.left + ((value - from) / (to - from)) * (plot.right - plot.left)),
    y: (value) => {
      const share = (place(value) - place(low)) / (place(high) - place(low));
      return round(plot.bottom - share * (plot.bottom - plot.top));
    },
    low,
    high,
    isInside,
  };
}

function gridLines(content: PlotContent, scale: Scales, { text: colour, grid }: PictureColours) {
  const ys =
    content.y === 'log' ? logTicks(scale.low, scale.high) : linearTicks(scale.low, scale.high, 6);
  const xs = linearTicks(...content.range, 7).filter(scale.isInside);
  return [
    ...ys.flatMap((y) => [
      `<path d="M${plot.left} ${scale.y(y)}H${plot.right}" stroke="${grid}"/>`,
      text(plot.left - 6, scale.y(y) + 4, yTick(y), colour, 'text-anchor="end"'),
    ]),
    ...xs.flatMap((x) => [
      `<path d="M${scale.x(x)} ${plot.top}V${plot.bottom}" stroke="${grid}"/>`,
      text(scale.x(x), plot.bottom + 16, xTick(x, content.x), colour, 'text-anchor="middle"'),
    ]),
  ];
}

// The points in the range.
function linePath({ xs }: PlotContent, line: PlotLine, scale: Scales): string {
  let path = '';
  let pen = 'M';
  line.values.forEach((value, index) => {
    const x = xs[index] as number;
    if (value === undefined) return;
    if (value === null || !scale.isInside(x)) {
      pen = 'M';
      return;
    }
    // A point on its own, between two gaps, is a dot by its round ends.
    path += `${pen}${scale.x(x)} ${scale.y(value)}${pen === 'M' ? 'h0' : ''}`;
    pen = 'L';
  });
  if (path === '' || line.kind === 'edge') return '';
  const faint = line.kind === 'curve' ? '' : ' stroke-opacity="0.25"';
  return (
    `<path d="${path}" fill="none" stroke="${line.look.colour}" stroke-width="1.5"` +
    ` stroke-linecap="round"${faint}${dashes(line.look)}/>`
  );
}

function bandPath(
  { xs, lines }: PlotContent,
  { high, low, colour }: PlotContent['bands'][number],
  scale: Scales,
): string {
  const edge = (line: number) =>
    (lines[line]?.values ?? []).flatMap((value, index) => {
      const x = xs[index] as number;
      return typeof value === 'number' && scale.isInside(x)
        ? [`${scale.x(x)} ${scale.y(value)}`]
        : [];
    });
  const points = [...edge(high), ...edge(low).reverse()];
  return points.length < 3
    ? ''
    : `<path d="M${points.join('L')}Z" fill="${colour}" fill-opacity="0.18"/>`;
}

function lineMarks({ look, marks, spikes, badX }: PlotLine, scale: Scales): string[] {
  const stroke = `fill="none" stroke="${look.colour}" stroke-width="1.5"`;
  const found = marks.flatMap(({ x, value }) => {
    if (!scale.isInside(x)) return [];
    const at = scale.x(x);
    if (Number.isNaN(value)) {
      return [`<path d="M${at - 4} ${plot.bottom - 8}l8 8m0-8l-8 8" ${stroke}/>`];
    }
    if (Number.isFinite(value)) {
      return [`<circle cx="${at}" cy="${plot.bottom - 4}" r="3.2" ${stroke}/>`];
    }
    const [tip, base] = value > 0 ? [plot.top, 8] : [plot.bottom, -8];
    return [`<path d="M${at} ${tip}l4 ${base}h-8z" fill="${look.colour}"/>`];
  });
  const rings = spikes
    .filter(({ x }) => scale.isInside(x))
    .map(({ x, value }) => `<circle cx="${scale.x(x)}" cy="${scale.y(value)}" r="5" ${stroke}/>`);
  const bad =
    badX !== undefined && scale.isInside(badX)
      ? [text(scale.x(badX), plot.bottom - 9, '⚡\uFE0E', look.colour, 'text-anchor="middle"')]
      : [];
  return [...found, ...rings, ...bad];
}

function text(x: number, y: number, content: string, colour: string, more = ''): string {
  return `<text x="${x}" y="${y}" fill="${colour}" ${more}>${escaped(content)}</text>`;
}

function round(value: number): number {
  return Math.round(10 * value) / 10;
}
