import { describe, expect, it } from 'vitest';
import { parseLook } from './look';

describe('parseLook', () => {
  it('is plain where the address says nothing, or nonsense', () => {
    const plain = { x: 'step', y: 'log', halfLife: 0 };
    expect(parseLook({})).toEqual(plain);
    expect(parseLook({ y: 'x', by: 'parsec', smooth: '-3' })).toEqual(plain);
    expect(parseLook({ smooth: 'NaN' })).toEqual(plain);
  });
  it('is what the address says', () => {
    expect(parseLook({ y: 'linear', by: 'tokens', smooth: '30' })).toEqual({
      x: 'tokens',
      y: 'linear',
      halfLife: 30,
    });
  });
});
