import { describe, expect, it } from 'vitest';
import { byTime, byTokens, tokensPerStep } from './x_axis';

describe('x by tokens', () => {
  it('counts batch, sequence and accumulation', () => {
    expect(tokensPerStep({ batchSize: '24', sequenceLength: '32', accumulate: '2' })).toBe(1536);
    expect(tokensPerStep(undefined)).toBe(1);
    const scale = byTokens(768);
    expect(scale.of(10)).toBe(7680);
    expect(scale.stepAt(7680)).toBe(10);
  });
});

describe('x by time', () => {
  const steps = [1, 2, 3, 4];
  it('adds up how long the steps took', () => {
    const scale = byTime({ steps, values: [500, 1000, 1500, 1000] });
    expect(steps.map((step) => scale.of(step))).toEqual([500, 1500, 3000, 4000]);
    expect(scale.stepAt(3000)).toBe(3);
    expect(scale.stepAt(2250)).toBe(2.5);
  });
  it('goes on at the mean pace beyond the last step', () => {
    const scale = byTime({ steps, values: [1000, 1000, 1000, 1000] });
    expect(scale.of(6)).toBe(6000);
    expect(byTime({ steps: [], values: [] }).of(6)).toBe(0);
  });
  it('is not led astray by the extremes of a thinned series', () => {
    // 10,000 steps of 10 ms, one of them a whole second, 1 point in 100 kept.
    const kept = Array.from({ length: 100 }, (_, index) => 100 * (index + 1)).concat(5050);
    kept.sort((a, b) => a - b);
    const scale = byTime({ steps: kept, values: kept.map((step) => (step === 5050 ? 1000 : 10)) });
    expect(scale.of(10_000)).toBeGreaterThan(100_000);
    expect(scale.of(10_000)).toBeLessThan(102_000);
  });
});
