import { signal } from '@preact/signals';
import { beforeEach, describe, expect, it } from 'vitest';
import { byStep, byTime, byTokens, type XMode, type XScale } from '../series/x_axis';
import { Series } from '../state/curve';
import { address } from '../state/router';
import { cursorStep, cursorX } from '../state/selection';
import { type Board, setCursor, stepsShown, stepUnderCursor, xRange } from './board';

/** Two runs of 100 planned steps, of which so many have come. */
function board(x: XMode, scales: Record<string, XScale>, last = 50): Board {
  const loss = new Series();
  for (let step = 1; step <= last; step++) loss.append(step, 1);
  return {
    live: { runs: { peek: () => ({ progress: { steps: '100' } }) } },
    curves: { depend: () => undefined, held: () => loss },
    runs: signal(Object.keys(scales)),
    look: signal({ x, y: 'log', halfLife: 0 }),
    scaleOf: (run: string) => scales[run] ?? byStep,
  } as unknown as Board;
}
const zoomTo = (x: string) => {
  address.value = { view: 'runs', id: '', query: { x } };
};
const tenMilliseconds = (last: number) => {
  const steps = Array.from({ length: last }, (_, index) => index + 1);
  return byTime({ steps, values: steps.map(() => 10) });
};

describe('stepsShown', () => {
  beforeEach(() => zoomTo(''));

  it('are all while nothing is zoomed', () => {
    expect(stepsShown(board('step', { a: byStep }), 'a')).toBeUndefined();
  });
  it('are those of the run at places on the axis', () => {
    zoomTo('768..7680');
    expect(stepsShown(board('tokens', { a: byTokens(768) }), 'a')).toEqual({ from: 1, to: 10 });
  });
  it('do not move while steps come, though the end of the range is only guessed', () => {
    zoomTo('200..900');
    const at = (last: number) => stepsShown(board('time', { a: tenMilliseconds(last) }, last), 'a');
    expect(at(50)).toEqual({ from: 20, to: 100 });
    expect(at(51)).toEqual({ from: 20, to: 100 });
    expect(at(95)).toEqual({ from: 20, to: 90 });
  });
});

describe('the x axis', () => {
  beforeEach(() => zoomTo(''));
  it('spans the planned steps of the run that goes furthest', () => {
    expect(xRange(board('step', { a: byStep }))).toEqual([0, 100]);
    const both = board('tokens', { a: byTokens(8), b: byTokens(16) });
    expect(xRange(both)).toEqual([0, 1600]);
    zoomTo('3..9');
    expect(xRange(both)).toEqual([3, 9]);
  });
});

describe('the cursor', () => {
  it('is at a step where that is the same one in all runs', () => {
    setCursor(board('tokens', { a: byTokens(8), b: byTokens(8) }), 81);
    expect(cursorStep.value).toBe(10);
    setCursor(board('tokens', { a: byTokens(8), b: byTokens(16) }), 81);
    expect(cursorStep.value).toBeUndefined();
    setCursor(board('step', { a: byStep }), undefined);
    expect(cursorStep.value).toBeUndefined();
    expect(cursorX.value).toBeUndefined();
  });
  it('is at a step of each run, wherever the others are', () => {
    const both = board('tokens', { a: byTokens(8), b: byTokens(16) });
    setCursor(both, 160);
    expect([stepUnderCursor(both, 'a'), stepUnderCursor(both, 'b')]).toEqual([20, 10]);
    setCursor(both, undefined);
    expect(stepUnderCursor(both, 'a')).toBeUndefined();
  });
});
