// Draws into an SVG text what a canvas would show, as far as heatmaps need it.
import { escaped } from './svg_text';

/** The part of a canvas' context that is used. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | 'fillStyle'
  | 'strokeStyle'
  | 'font'
  | 'textAlign'
  | 'textBaseline'
  | 'clearRect'
  | 'fillRect'
  | 'strokeRect'
  | 'fillText'
>;

const anchors: Record<string, string> = { right: 'end', center: 'middle', left: 'start' };
const baselines: Record<string, string> = { middle: 'central', top: 'hanging' };

export class SvgPen implements Pen {
  fillStyle: Pen['fillStyle'] = '#000';
  strokeStyle: Pen['strokeStyle'] = '#000';
  font = '';
  textAlign: CanvasTextAlign = 'left';
  textBaseline: CanvasTextBaseline = 'alphabetic';
  private readonly parts: string[] = [];

  /** Nothing is below. */
  clearRect(): void {}

  fillRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect ${place(x, y, width, height)} fill="${this.fillStyle}"/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    const stroke = `fill="none" stroke="${this.strokeStyle}"`;
    this.parts.push(`<rect ${place(x, y, width, height)} ${stroke}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    const anchor = anchors[this.textAlign] ?? 'start';
    const baseline = baselines[this.textBaseline] ?? 'auto';
    this.parts.push(
      `<text x="${x}" y="${y}" text-anchor="${anchor}" dominant-baseline="${baseline}"` +
        ` fill="${this.fillStyle}">${escaped(text)}</text>`,
    );
  }

  /** What was drawn, as elements of an SVG with letters of 11 pixels. */
  content(): string {
    return ['<g shape-rendering="crispEdges">', ...this.parts, '</g>'].join('\n');
  }
}

function place(x: number, y: number, width: number, height: number): string {
  return `x="${x}" y="${y}" width="${width}" height="${height}"`;
}
