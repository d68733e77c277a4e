// Pictures of charts that stand alone: with a title, whose the lines are, and what is to be known of
// them. All are SVG first; a PNG is the same in pixels.
import { download, fileName } from './download';
import type { LineLook } from './palette';
import { escaped } from './svg_text';

export interface PictureText {
  title: string;
  /** The lines, by name; none where the title says it all. */
  legend: readonly { name: string; look: LineLook }[];
  /** What is written below the chart. */
  note: string;
}

export interface PictureColours {
  background: string;
  text: string;
  grid: string;
}

export interface Picture {
  svg: string;
  width: number;
  height: number;
}

const above = 28;
const rowHeight = 18;
const left = 52;

/** `content`: elements of an SVG of this size. */
export function pictureOf(
  content: string,
  width: number,
  chartHeight: number,
  { title, legend, note }: PictureText,
  { background, text }: PictureColours,
): Picture {
  const notes = wrapped(note, Math.floor((width - left - 12) / 6));
  const height = above + chartHeight + rowHeight * (legend.length + notes.length) + 8;
  const row = (index: number) => above + chartHeight + rowHeight * (index + 0.5);
  const write = (x: number, y: number, words: string, more = '') =>
    `<text x="${x}" y="${y}" fill="${text}"${more}>${escaped(words)}</text>`;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}"` +
      ` width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="${background}"/>`,
    write(12, 19, title, ' font-size="13"'),
    `<g transform="translate(0 ${above})">`,
    content,
    '</g>',
    ...legend.flatMap(({ name, look }, index) => [
      `<path d="M${left} ${row(index)}h24" stroke="${look.colour}" stroke-width="2"${dashes(look)}/>`,
      write(left + 32, row(index) + 4, name),
    ]),
    ...notes.map((line, index) => write(left, row(legend.length + index) + 4, line)),
    '</svg>',
  ];
  return { svg: `${parts.join('\n')}\n`, width, height };
}

export function dashes({ dash }: LineLook): string {
  return dash ? ` stroke-dasharray="${dash.join(' ')}"` : '';
}

// Lines of about so many characters.
function wrapped(text: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ').filter((one) => one !== '')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines;
}

/** The colours of the page as it is. */
export function pageColours(): PictureColours & { secondary: string } {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    background: colour('--background'),
    text: colour('--text'),
    grid: colour('--line'),
    secondary: colour('--secondary'),
  };
}

/** What a menu offers: the picture in its two kinds, under a name made of these parts. */
export function pictureWays(
  name: () => readonly string[],
  make: () => Picture | undefined,
): [string, () => Promise<void>][] {
  const file = (kind: string) => `${fileName(...name())}.${kind}`;
  return [
    [
      'PNG',
      async () => {
        const picture = make();
        if (picture) download(file('png'), await inPixels(picture), 'image/png');
      },
    ],
    [
      'SVG',
      async () => {
        const picture = make();
        if (picture) download(file('svg'), picture.svg, 'image/svg+xml');
      },
    ],
  ];
}

async function inPixels({ svg, width, height }: Picture): Promise<Blob> {
  const scale = Math.max(2, devicePixelRatio);
  const image = new Image(width, height);
  // Not a blob's address, which the page's policy does not allow for pictures.
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser draws no pictures');
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture came out'))));
  });
}
