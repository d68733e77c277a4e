import { describe, expect, it } from 'vitest';
import { abandonedParts } from './lineage';

/** Attempts 1, 2, ... as [last step, resumed from step, resumed from attempt]. */
function parts(...attempts: [number, number?, number?][]) {
  return abandonedParts(
    attempts.map(([lastStep, resumedFromStep = 0, resumedFromAttempt = 0], index) => ({
      number: index + 1,
      lastStep: String(lastStep),
      resumedFromStep: String(resumedFromStep),
      resumedFromAttempt,
    })),
  );
}

describe('abandonedParts', () => {
  it('are none of a single attempt, nor where each goes on from the end of the one before', () => {
    expect(parts()).toEqual([]);
    expect(parts([100])).toEqual([]);
    expect(parts([100], [150, 100, 1])).toEqual([]);
  });

  it('are what came after the checkpoint that the next attempt went on from', () => {
    expect(parts([100], [150, 80, 1])).toEqual([{ attempt: 1, from: 81 }]);
    expect(parts([100], [150, 80, 1], [200, 120, 2])).toEqual([
      { attempt: 1, from: 81 },
      { attempt: 2, from: 121 },
    ]);
  });

  it('are all of an attempt that nothing goes on from', () => {
    expect(parts([100], [150, 80, 1], [200, 90, 1])).toEqual([
      { attempt: 1, from: 91 },
      { attempt: 2, from: 81 },
    ]);
    expect(parts([100], [20])).toEqual([{ attempt: 1, from: 1 }]);
  });

  it('are none of an attempt that wrote nothing', () => {
    expect(parts([100], [0, 100, 1], [150, 100, 1])).toEqual([]);
  });
});
