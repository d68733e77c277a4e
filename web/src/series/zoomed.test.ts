import { describe, expect, it } from 'vitest';
import { Series } from '../state/curve';
import { needsDetail, zoomed } from './zoomed';

function series(steps: number[], total = steps.length, value = (step: number) => step): Series {
  const made = new Series();
  for (const step of steps) made.append(step, value(step));
  made.total = total;
  return made;
}
const stepsFrom = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe('zoomed', () => {
  const range = { from: 40, to: 49 };

  it('is the whole curve while nothing is zoomed', () => {
    const held = series([1, 50, 100], 100);
    expect(zoomed(held, undefined, undefined)).toEqual({ drawn: held, inside: held });
    expect(needsDetail(held, undefined)).toBe(false);
  });

  it('needs no detail of a curve that is here as a whole', () => {
    const held = series(stepsFrom(1, 100));
    expect(needsDetail(held, range)).toBe(false);
    const { drawn, inside } = zoomed(held, undefined, range);
    expect(drawn).toBe(held);
    expect(inside?.steps).toEqual(stepsFrom(40, 49));
    expect(inside?.total).toBe(10);
  });

  it('draws what it has until the detail comes, and does not count it', () => {
    const held = series([1, 50, 100], 100);
    expect(needsDetail(held, range)).toBe(true);
    expect(zoomed(held, undefined, range)).toEqual({ drawn: held, inside: undefined });
  });

  it('puts the detail in the place of what was held there', () => {
    const held = series([1, 45, 100], 100);
    const { drawn, inside } = zoomed(held, series(stepsFrom(40, 49)), range);
    expect(drawn.steps).toEqual([1, ...stepsFrom(40, 49), 100]);
    expect(inside?.steps.length).toBe(10);
    expect(inside?.total).toBe(10);
  });

  it('lacks no point that was thinned away, in the range as beyond it', () => {
    const held = series([1, 500, 1000], 1000);
    const { drawn } = zoomed(held, series([100, 150, 199], 100), { from: 100, to: 199 });
    expect(drawn.lacks(120)).toBe(false);
    expect(drawn.pointAt(120)).toEqual({ step: 100, value: 100 });
    const whole = zoomed(held, series([100, 101, 103], 3), { from: 100, to: 103 }).drawn;
    expect(whole.lacks(102)).toBe(true);
  });

  it('goes on with what came by the stream after the detail', () => {
    const held = series([1, 45, 46, 47], 47);
    const { inside } = zoomed(held, series(stepsFrom(40, 45)), range);
    expect(inside?.steps).toEqual(stepsFrom(40, 47));
    expect(inside?.total).toBe(8);
  });

  it('counts what a log axis cannot show in the range alone', () => {
    const values = (step: number) => (step % 10 === 0 ? 0 : 1);
    const held = series([1, 10, 500, 1000], 1000, values);
    const { inside } = zoomed(held, series(stepsFrom(100, 125), 26, values), {
      from: 100,
      to: 125,
    });
    expect(inside?.offLogAxis).toBe(3);
  });

  it('counts what the detail was thinned by', () => {
    const held = series([1, 500, 1000], 1000);
    const detail = series([100, 150, 199], 100);
    detail.nonFinite = 3;
    detail.firstNonFiniteStep = 120;
    const { inside } = zoomed(held, detail, { from: 100, to: 199 });
    expect([inside?.total, inside?.nonFinite, inside?.firstNonFiniteStep]).toEqual([100, 3, 120]);
  });
});
