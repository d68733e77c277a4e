import { describe, expect, it } from 'vitest';
import { formatUrl, parseUrl } from './url_state';

describe('the address', () => {
  it('round-trips selection and zoom', () => {
    const state = { selected: ['01J8A', '01J8B'], zoom: { from: 20, to: 80 } };
    expect(formatUrl(state)).toBe('#/runs?sel=01J8A,01J8B&x=20..80');
    expect(parseUrl(formatUrl(state))).toEqual(state);
  });

  it('tells "says nothing" from "selects nothing"', () => {
    expect(parseUrl('#/runs').selected).toBeUndefined();
    expect(parseUrl('#/runs?sel=').selected).toEqual([]);
    expect(formatUrl({ selected: [], zoom: undefined })).toBe('#/runs?sel=');
  });

  it('drops what no run id can be, and repeats', () => {
    expect(parseUrl('#/runs?sel=a,a,<b>,,c').selected).toEqual(['a', 'c']);
  });

  it('ignores a zoom that is no range', () => {
    for (const x of ['80..20', '5..5', 'a..b', '-1..5', '']) {
      expect(parseUrl(`#/runs?x=${x}`).zoom).toBeUndefined();
    }
  });

  it('takes an empty or foreign fragment as nothing', () => {
    for (const hash of ['', '#', '#/', '#elsewhere']) {
      expect(parseUrl(hash)).toEqual({ selected: undefined, zoom: undefined });
    }
  });
});
