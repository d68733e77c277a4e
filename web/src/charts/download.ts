// Hands a file to the browser's downloads.

export function download(name: string, content: string | Blob, type: string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Not at once: the browser reads it a little later.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** A name that every file system takes, still readable: no more than letters, digits and - _ . */
export function fileName(...parts: string[]): string {
  const name = parts.filter((part) => part !== '').join('-');
  return (
    name
      .replace(/[^\p{L}\p{N}._-]+/gu, '-')
      .replace(/^[-.]+|-+$/g, '')
      .slice(0, 100) || 'chart'
  );
}

/** An SVG element as a text that stands alone. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  return new XMLSerializer().serializeToString(copy);
}

/** The same as pixels of the screen. */
export async function rastered(svg: string, width: number, height: number) {
  const image = new Image(width, height);
  // Not a blob's address, which the page's policy does not allow for pictures.
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** A picture of a canvas on the page's background, with a title above. */
export async function picture(
  canvas: HTMLCanvasElement,
  title: string,
  style: CSSStyleDeclaration,
): Promise<Blob> {
  const scale = devicePixelRatio;
  const above = 28 * scale;
  const whole = document.createElement('canvas');
  whole.width = canvas.width;
  whole.height = canvas.height + above;
  const context = whole.getContext('2d');
  if (!context) throw new Error('this browser draws no pictures');
  context.fillStyle = style.getPropertyValue('--background').trim();
  context.fillRect(0, 0, whole.width, whole.height);
  context.fillStyle = style.getPropertyValue('--text').trim();
  context.font = `${13 * scale}px system-ui, sans-serif`;
  context.fillText(title, 12 * scale, 19 * scale);
  context.drawImage(canvas, 0, above);
  return new Promise((resolve, reject) => {
    whole.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture came out'))));
  });
}
