// The colours of matplotlib's viridis map (CC0), evenly spaced: equal steps look equally far apart, also
// to colour-blind readers and in print.
const anchors = [
  '440154',
  '481567',
  '482677',
  '453781',
  '404788',
  '39568c',
  '33638d',
  '2d708e',
  '287d8e',
  '238a8d',
  '1f968b',
  '20a387',
  '29af7f',
  '3cbb75',
  '55c667',
  '73d055',
  '95d840',
  'b8de29',
  'dce319',
  'fde725',
].map((text) => [0, 2, 4].map((at) => Number.parseInt(text.slice(at, at + 2), 16)));

export type Rgb = [number, number, number];

/** `share` from 0, dark, to 1, bright. */
export function viridis(share: number): Rgb {
  const place = Math.min(1, Math.max(0, share)) * (anchors.length - 1);
  const below = Math.min(anchors.length - 2, Math.floor(place));
  const mix = place - below;
  const [a, b] = [anchors[below] as number[], anchors[below + 1] as number[]];
  const channel = (at: number) =>
    Math.round((a[at] as number) * (1 - mix) + (b[at] as number) * mix);
  return [channel(0), channel(1), channel(2)];
}

/** Infinite or NaN; nothing in viridis is red. */
export const brokenColour: Rgb = [214, 39, 40];
/** Zero or negative on a log scale. */
export const offScaleColour: Rgb = [127, 136, 151];

export function hex(colour: Rgb): string {
  return `#${colour.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}
