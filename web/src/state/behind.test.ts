import { describe, expect, it } from 'vitest';
import { stepsBehind } from './behind';
import { Curve } from './curve';

function curveTo(step: number): Curve {
  const curve = new Curve();
  curve.addLive(1, {
    loss: { steps: [1], values: [4] },
    gradient_norm: { steps: [1, step], values: [1, 1] },
  });
  return curve;
}

describe('stepsBehind', () => {
  const running = { state: 'STATE_RUNNING', progress: { step: '412' } } as const;

  it('is what the server has beyond the series that came furthest', () => {
    expect(stepsBehind(running, curveTo(400), false)).toBe(12);
    expect(stepsBehind(running, curveTo(412), false)).toBe(0);
    expect(stepsBehind(running, curveTo(500), false)).toBe(0);
    expect(stepsBehind(running, undefined, true)).toBe(412);
    expect(stepsBehind({}, undefined, true)).toBe(0);
  });

  it('does not wait for ever for an ended run', () => {
    const ended = { ...running, state: 'STATE_FAILED' } as const;
    expect(stepsBehind(ended, curveTo(400), true)).toBe(12);
    expect(stepsBehind(ended, curveTo(400), false)).toBe(0);
  });
});
