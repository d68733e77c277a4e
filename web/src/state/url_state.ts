// The address after '#', which says all that a page shows: a copied address shows the same.
//   #/runs?filter=user=lab1&sel=01J8…,01J9…&x=20..80
//   #/runs/ID   #/compare?runs=ID,ID   #/experiments/ID   #/queue   #/submit?from=ID
// Pure functions; router.ts is the page's own address.

export type View = 'runs' | 'run' | 'compare' | 'experiment' | 'queue' | 'submit';

export interface Address {
  view: View;
  /** Of the run or the experiment that is looked at; else ''. */
  id: string;
  /** What the view keeps there, by name; each view knows its own. */
  query: Readonly<Record<string, string>>;
}

const folders: Record<View, string> = {
  runs: '/runs',
  run: '/runs/',
  compare: '/compare',
  experiment: '/experiments/',
  queue: '/queue',
  submit: '/submit',
};

/** What is no address of a view is the one of the runs. */
export function parseAddress(hash: string): Address {
  const mark = hash.indexOf('?');
  const path = (mark < 0 ? hash : hash.slice(0, mark)).replace(/^#/, '');
  const query = Object.fromEntries(new URLSearchParams(mark < 0 ? '' : hash.slice(mark + 1)));
  const [, folder, id] = /^(\/[a-z]+\/?)([\w-]*)$/.exec(path) ?? [];
  for (const [view, wanted] of Object.entries(folders) as [View, string][]) {
    if (folder === wanted && wanted.endsWith('/') === (id !== '')) {
      return { view, id: id ?? '', query };
    }
  }
  return { view: 'runs', id: '', query: {} };
}

export function formatAddress({ view, id, query }: Address): string {
  const parts = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeValue(value)}`,
  );
  return `#${folders[view]}${id}${parts.length > 0 ? `?${parts.join('&')}` : ''}`;
}

// As people would write it, as far as browsers leave an address as it is.
function encodeValue(value: string): string {
  return encodeURIComponent(value).replace(/%(2C|3A|2F|3D)/g, decodeURIComponent);
}

/** The address of a view, for links. */
export function addressOf(view: View, id = '', query: Record<string, string> = {}): string {
  return formatAddress({ view, id, query });
}

/** Ids as a list in an address has them, each once; undefined when the address has no such list. */
export function parseIds(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  return [...new Set(text.split(',').filter((id) => /^[\w-]+$/.test(id)))];
}

export interface Range {
  from: number;
  to: number;
}

/** 20..80 */
export function parseRange(text: string | undefined): Range | undefined {
  const found = /^(\d+)\.\.(\d+)$/.exec(text ?? '');
  if (!found) return undefined;
  const range = { from: Number(found[1]), to: Number(found[2]) };
  return range.to > range.from ? range : undefined;
}

export function formatRange(range: Range | undefined): string | undefined {
  return range && `${range.from}..${range.to}`;
}
