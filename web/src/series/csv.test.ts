import { describe, expect, it } from 'vitest';
import { csvOf, tableRows } from './csv';

describe('csvOf', () => {
  it('has words for what is not finite, and an empty cell for no value', () => {
    const rows = [
      ['a', 1, Number.NaN],
      ['a', 2, -Infinity],
      ['a', 3, undefined],
    ];
    expect(csvOf(['run', 'step', 'loss'], rows)).toBe(
      'run,step,loss\na,1,NaN\na,2,-Infinity\na,3,\n',
    );
  });

  it('quotes what would end a cell, and starts no formula', () => {
    expect(csvOf(['x'], [['a "b", c']])).toBe('x\n"a ""b"", c"\n');
    expect(csvOf(['x'], [['=1+1'], ["'x"], ['two\nlines'], [' kept ']])).toBe(
      `x\n'=1+1\n''x\n"two\nlines"\n" kept "\n`,
    );
  });

  it('writes numbers so that they read back as they were', () => {
    expect(csvOf(['x'], [[0.1], [1e-300], [-5]])).toBe('x\n0.1\n1e-300\n-5\n');
  });
});

describe('tableRows', () => {
  it('has a row for each step of any series', () => {
    const loss = { name: 'loss', steps: [1, 2, 3], values: [4, 'NaN', 2] };
    const rms = { name: 'block/1/stream_rms', steps: [2, 4], values: [7, 8] };
    expect(tableRows('a', [loss, rms])).toEqual([
      ['a', 1, 4, undefined],
      ['a', 2, Number.NaN, 7],
      ['a', 3, 2, undefined],
      ['a', 4, undefined, 8],
    ]);
    expect(tableRows('a', [])).toEqual([]);
  });
});
