// A chart as an SVG text: the same lines, axes and marks that uPlot draws on its canvas.
import { linearRange, linearTicks, logRange, logTicks } from './axes';
import type { PlotContent, PlotLine } from './plot_content';
import { escaped } from './svg_text';
import { xTick, yTick } from './tick_text';

export interface SvgColours {
  background: string;
  text: string;
  grid: string;
}

const size = { width: 720, height: 400 };
const plot = { left: 56, top: 34, right: 704, bottom: 364 };

export function svgOf(title: string, content: PlotContent, colours: SvgColours): string {
  const scale = scales(content);
  const names = content.lines.filter(({ kind }) => kind === 'curve');
  const height = size.height + 18 * names.length;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}"` +
      ` width="${size.width}" height="${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="${colours.background}"/>`,
    text(plot.left, 20, title, colours.text, 'font-size="13"'),
    ...gridLines(content, scale, colours),
    ...content.bands.map((band) => bandPath(content, band, scale)),
    ...content.lines.map((line) => linePath(content, line, scale)),
    ...content.lines.flatMap((line) => lineMarks(line, scale)),
    ...names.flatMap(({ name, look }, index) => {
      const y = size.height + 18 * index;
      return [
        `<path d="M${plot.left} ${y}h24" stroke="${look.colour}" stroke-width="2"${dash(look.dash)}/>`,
        text(plot.left + 32, y + 4, name, colours.text),
      ];
    }),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
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

function gridLines(content: PlotContent, scale: Scales, { text: colour, grid }: SvgColours) {
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

// The points in the range, and one on either side, at which a clip ends the line.
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
    ` stroke-linecap="round"${faint}${dash(line.look.dash)}/>`
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

function dash(pattern: number[] | undefined): string {
  return pattern ? ` stroke-dasharray="${pattern.join(' ')}"` : '';
}

function round(value: number): number {
  return Math.round(10 * value) / 10;
}
