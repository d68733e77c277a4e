import { describe, expect, it } from 'vitest';
import { Series } from '../state/curve';
import { cursorNote, cursorValue, valueText } from './cursor_text';

function series(points: [number, number][], total = points.length): Series {
  const made = new Series();
  for (const [step, value] of points) made.append(step, value);
  made.total = total;
  return made;
}
const note = (curves: [string, Series | undefined, number | undefined][]) =>
  cursorNote(
    curves.flatMap(([name, curve, step]) => cursorValue(name, curve, step)),
    curves.length,
  );

describe('the note under the cursor', () => {
  const curve = series([
    [1, 4],
    [2, Infinity],
    [3, Number.NaN],
    [5, -Infinity],
    [6, 0],
    [8, -0.25],
  ]);
  it.each([
    [undefined, ''],
    [0, ''],
    [1, 'step 1: 4.00'],
    [2, 'step 2: +Infinity'],
    [3, 'step 3: NaN'],
    [4, 'step 4: no point'],
    [5, 'step 5: −Infinity'],
    [6, 'step 6: 0'],
    [8, 'step 8: −0.250'],
    [9, ''],
  ])('at step %s says "%s"', (step, text) => expect(note([['a', curve, step]])).toBe(text));

  it('names the curves when there are several', () => {
    const other = series([
      [1, 1],
      [9, 1],
    ]);
    expect(
      note([
        ['a', curve, 3],
        ['b', other, 3],
        ['c', undefined, 3],
      ]),
    ).toBe('step 3: NaN (\u2068a\u2069), no point (\u2068b\u2069)');
  });

  it('has the step of each where an axis of time puts other steps side by side', () => {
    const text = note([
      ['a', curve, 1],
      ['b', curve, 8],
    ]);
    expect(text).toBe('4.00 (\u2068a\u2069, step 1), −0.250 (\u2068b\u2069, step 8)');
  });

  it('tells of many curves only what no line shows', () => {
    const four = (step: number) => note(['a', 'b', 'c', 'd'].map((name) => [name, curve, step]));
    expect(four(1)).toBe('');
    expect(four(3)).toMatch(/^step 3: NaN .*NaN .*NaN .*NaN/);
  });
});

describe('a value at a step', () => {
  it('is of the last point before where points were thinned away, and says so', () => {
    const thinned = series(
      [
        [1, 1],
        [7, 2],
        [9, 1],
      ],
      9,
    );
    expect(valueText(thinned, 7)).toBe('2.00');
    expect(valueText(thinned, 8)).toBe('2.00 (step 7)');
    expect(valueText(thinned, 10)).toBe('');
  });
});
