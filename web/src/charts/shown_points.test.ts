import { beforeEach, describe, expect, it } from 'vitest';
import { zoomed } from '../series/zoomed';
import { Series } from '../state/curve';
import type { CurveSet } from '../state/curve_set';
import { address } from '../state/router';
import { partName, shownPoints } from './shown_points';

function series(steps: number[], total = steps.length): Series {
  const made = new Series();
  for (const step of steps) made.append(step, step);
  made.total = total;
  return made;
}
const curves = (held: Series, detail?: Series) =>
  ({
    zoomed: (_run: string, _name: string, range?: { from: number; to: number }) =>
      zoomed(held, detail, range),
  }) as unknown as CurveSet;
const range = { from: 40, to: 43 };

describe('the points that a chart shows', () => {
  it('are those of the zoom, as the server told them', () => {
    const shown = shownPoints(
      curves(series([1, 50], 50), series([40, 41, 42, 43])),
      'a',
      '',
      range,
    );
    expect(shown.points.steps).toEqual([40, 41, 42, 43]);
    expect(shown.thinned).toBe(false);
    expect(shown.drawn.steps).toEqual([1, 40, 41, 42, 43, 50]);
  });
  it('are some of them while the server has not told the others', () => {
    const shown = shownPoints(curves(series([1, 41, 50], 50)), 'a', '', range);
    expect(shown.points.steps).toEqual([41]);
    expect(shown.thinned).toBe(true);
  });
  it('are all that are held of a curve that is not zoomed', () => {
    const { points, thinned } = shownPoints(curves(series([1, 50], 50)), 'a', '', undefined);
    expect([points.steps, thinned]).toEqual([[1, 50], true]);
  });
});

describe('the name of a file of points', () => {
  beforeEach(() => {
    address.value = { view: 'runs', id: '', query: {} };
  });
  it('says which they are', () => {
    expect(partName('step', false)).toEqual([]);
    expect(partName('step', true)).toEqual(['thinned']);
    address.value = { view: 'runs', id: '', query: { x: '40..43' } };
    expect(partName('tokens', true)).toEqual(['tokens', '40', '43', 'thinned']);
  });
});
