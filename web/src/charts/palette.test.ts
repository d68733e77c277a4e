import { describe, expect, it } from 'vitest';
import { assignLooks, palette } from './palette';

const none = new Map();
const plain = () => undefined;

describe('assignLooks', () => {
  it('takes colours in order', () => {
    const looks = assignLooks(['a', 'b'], none, plain);
    expect(looks.get('a')?.colour).toBe(palette[0]);
    expect(looks.get('b')?.colour).toBe(palette[1]);
  });

  it('recolours no run when another is taken away or added', () => {
    const before = assignLooks(['a', 'b', 'c'], none, plain);
    const after = assignLooks(['c', 'd', 'b'], before, plain);
    expect(after.get('b')).toBe(before.get('b'));
    expect(after.get('c')).toBe(before.get('c'));
    expect(after.get('d')?.colour).toBe(palette[0]);
  });

  it('gives a preset its colours, once', () => {
    const looks = assignLooks(['x', 'a', 'b'], none, (run) =>
      run === 'x' ? undefined : '#2563eb',
    );
    expect(looks.get('a')?.colour).toBe('#2563eb');
    expect(looks.get('b')?.colour).not.toBe('#2563eb');
    expect(looks.get('x')?.colour).not.toBe('#2563eb');
  });

  it('dashes from the eleventh run on, and survives more runs than looks', () => {
    const runs = Array.from({ length: 40 }, (_, index) => `run${index}`);
    const looks = assignLooks(runs, none, plain);
    expect(looks.get('run10')).toEqual({ colour: palette[0], dash: [6, 3] });
    expect(looks.size).toBe(40);
  });

  it('does not take a colour that is none', () => {
    expect(assignLooks(['a'], none, () => 'url(x)').get('a')?.colour).toBe(palette[0]);
  });
});
