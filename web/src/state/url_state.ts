// What a view shows, as the part of the address after '#': a copied address shows the same.
//   #/runs?sel=01J8…,01J9…&x=20..80

export interface UrlState {
  /** Ids of the runs whose curves are drawn; undefined when the address does not say. */
  selected: string[] | undefined;
  /** The steps zoomed to. */
  zoom: { from: number; to: number } | undefined;
}

export function parseUrl(hash: string): UrlState {
  const mark = hash.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : hash.slice(mark + 1));
  const sel = query.get('sel');
  const selected =
    sel === null ? undefined : [...new Set(sel.split(',').filter((id) => /^[\w-]+$/.test(id)))];
  const range = /^(\d+)\.\.(\d+)$/.exec(query.get('x') ?? '');
  const zoom = range ? { from: Number(range[1]), to: Number(range[2]) } : undefined;
  return { selected, zoom: zoom && zoom.to > zoom.from ? zoom : undefined };
}

export function formatUrl(state: UrlState): string {
  const parts: string[] = [];
  if (state.selected) parts.push(`sel=${state.selected.join()}`);
  if (state.zoom) parts.push(`x=${state.zoom.from}..${state.zoom.to}`);
  return parts.length > 0 ? `#/runs?${parts.join('&')}` : '#/runs';
}
