// Sizes as people write them and as the API has them.

const units = ['', 'KiB', 'MiB', 'GiB', 'TiB'];

/** 8GiB and 500 MiB as the command line takes them; what is neither is left to the server. */
export function bytesOf(text: string): string {
  const found = /^(\d+(?:\.\d+)?) ?(KiB|MiB|GiB|TiB)$/.exec(text.trim());
  if (!found) return text;
  return String(Math.round(Number(found[1]) * 1024 ** units.indexOf(found[2] ?? '')));
}

/** The same backwards and exactly: 8GiB, or 1000000; '' for none. */
export function bytesText(bytes: number): string {
  if (!(bytes > 0)) return '';
  let power = 0;
  while (power + 1 < units.length && bytes % 1024 ** (power + 1) === 0) power++;
  return `${bytes / 1024 ** power}${units[power]}`;
}
