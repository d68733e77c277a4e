import { describe, expect, it } from 'vitest';
import { zoomAround } from './zoom_keys';

describe('zooming around the cursor', () => {
  const whole: [number, number] = [0, 100];
  it('leaves the cursor where it is', () => {
    expect(zoomAround(whole, 40, 0.5, whole)).toEqual({ from: 20, to: 70 });
    expect(zoomAround([20, 70], 40, 2, [0, 1000])).toEqual({ from: 0, to: 100 });
  });
  it('goes no further out than there is anything', () => {
    expect(zoomAround([20, 70], 40, 2, whole)).toBeUndefined();
    expect(zoomAround([0, 20], 20, 2, whole)).toEqual({ from: 0, to: 40 });
    expect(zoomAround([80, 100], 80, 2, whole)).toEqual({ from: 60, to: 100 });
  });
  it('ends at a range that has still two whole places', () => {
    expect(zoomAround([40, 42], 41, 0.5, whole)).toEqual({ from: 40, to: 42 });
    expect(zoomAround([40, 41], 41, 0.5, whole)).toEqual({ from: 40, to: 41 });
    expect(zoomAround([10, 30], 50, 0.5, whole)).toEqual({ from: 20, to: 30 });
  });
});
