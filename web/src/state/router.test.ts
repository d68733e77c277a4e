import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { address, goTo, returnTo, setQuery, startRouter } from './router';

/** A browser's address; its event comes when `settle` is called, as it comes later in a browser. */
const place = { hash: '#/runs' };
let changed: () => void = () => undefined;
const settle = () => changed();

beforeAll(() => {
  vi.stubGlobal('location', place);
  vi.stubGlobal('history', {
    replaceState: (_: unknown, __: string, hash: string) => {
      place.hash = hash;
    },
  });
  vi.stubGlobal('addEventListener', (_: string, listener: () => void) => {
    changed = listener;
  });
  startRouter();
});
beforeEach(() => {
  place.hash = '#/runs';
  settle();
});
afterAll(() => vi.unstubAllGlobals());

describe('the address of the page', () => {
  it('is what the browser says, and says what the view keeps in it', () => {
    setQuery({ sel: 'a,b' });
    expect(place.hash).toBe('#/runs?sel=a,b');
    setQuery({ sel: undefined });
    expect(place.hash).toBe('#/runs');
    goTo('run', 'x');
    settle();
    expect(address.value).toEqual({ view: 'run', id: 'x', query: {} });
  });

  it('goes where somebody went, though the view before changes its own a moment later', () => {
    goTo('run', 'x');
    setQuery({ sel: 'a' }); // what the view before had asked for has come
    expect(place.hash).toBe('#/runs/x');
    settle();
    expect(address.value).toEqual({ view: 'run', id: 'x', query: {} });
    setQuery({ y: 'linear' });
    expect(place.hash).toBe('#/runs/x?y=linear');
    expect(returnTo('run')).toBe('#/runs/x?y=linear');
  });
});
