import { describe, expect, it } from 'vitest';
import { byTokens } from '../series/x_axis';
import { Series } from '../state/curve';
import { type ChartLook, curveContent, derivedCurve, plainLook, type RunCurve } from './lines';
import { svgOf } from './svg_chart';

const blue = { colour: '#2563eb', dash: undefined };

function curve(run: string, values: number[], more: Partial<RunCurve> = {}): RunCurve {
  const steps = values.map((_, index) => index + 1);
  return { ...derivedCurve(run, run, blue, { steps, values }), ...more };
}
const content = (curves: RunCurve[], look: Partial<ChartLook> = {}) =>
  curveContent(curves, [], { ...plainLook, ...look }, [0, 10]);

describe('curveContent', () => {
  it('has the raw line behind a smoothed one', () => {
    const plain = content([curve('a', [4, 2, 4, 2])]);
    expect(plain.lines.map(({ kind }) => kind)).toEqual(['curve']);
    const smooth = content([curve('a', [4, 2, 4, 2])], { halfLife: 5 });
    // What comes first is drawn first.
    expect(smooth.lines.map(({ kind }) => kind)).toEqual(['raw', 'curve']);
    expect(smooth.lines[0]?.values).toEqual([4, 2, 4, 2]);
    expect(smooth.lines[1]?.values.at(-1)).toBeGreaterThan(2.5);
    const svg = svgOf('loss', '', smooth, { background: '#fff', text: '#000', grid: '#ccc' }).svg;
    expect(svg.match(/stroke-opacity/g)?.length).toBe(1);
    expect(svg.indexOf('stroke-opacity')).toBeLessThan(svg.lastIndexOf('stroke-linecap'));
  });

  it('smooths over steps, whatever the axis counts', () => {
    const scale = byTokens(768);
    const bySteps = content([curve('a', [4, 2, 8, 1])], { halfLife: 2 });
    const tokens = content([curve('a', [4, 2, 8, 1], { scale })], { halfLife: 2, x: 'tokens' });
    expect(tokens.lines[1]?.values).toEqual(bySteps.lines[1]?.values);
    expect(tokens.xs).toEqual([768, 1536, 2304, 3072]);
  });

  it('marks spikes at their value, where the axis has a place for it', () => {
    const bad = { spikes: [2, 3], firstBadStep: 3 };
    const [line] = content([curve('a', [4, 8, Number.NaN], bad)]).lines;
    expect(line?.spikes).toEqual([{ x: 2, value: 8 }]);
    expect(line?.badX).toBe(3);
    expect(line?.marks).toEqual([{ x: 3, value: Number.NaN }]);
  });

  it('marks what a log axis cannot show, and on a linear one only what is not finite', () => {
    const values = [4, 0, -1, Number.NEGATIVE_INFINITY];
    const marks = (y: 'log' | 'linear') => content([curve('a', values)], { y }).lines[0]?.marks;
    const infinite = { x: 4, value: Number.NEGATIVE_INFINITY };
    expect(marks('log')).toEqual([{ x: 2, value: 0 }, { x: 3, value: -1 }, infinite]);
    expect(marks('linear')).toEqual([infinite]);
  });

  it('has what attempts left behind at the back, and nothing under the cursor of it', () => {
    const left = new Series();
    left.append(2, 9);
    const { lines } = content([curve('a', [4, 2], { left: [left, undefined] }), curve('b', [1])]);
    expect(lines.map(({ key, kind }) => `${key} ${kind}`)).toEqual([
      'a left',
      'a left',
      'a curve',
      'b curve',
    ]);
    expect(lines[0]?.values).toEqual([undefined, 9]);
  });

  it('has a band between two edges', () => {
    const band = { low: curve('g', [1, 1]), high: curve('g', [3, 4]) };
    const made = curveContent([curve('g', [2, 2])], [], plainLook, [0, 10], [band]);
    expect(made.lines.map(({ kind }) => kind)).toEqual(['edge', 'edge', 'curve']);
    expect(made.bands).toEqual([{ high: 0, low: 1, colour: '#2563eb' }]);
    expect(made.lines[0]?.values).toEqual([3, 4]);
  });
});

describe('svgOf', () => {
  const colours = { background: '#fff', text: '#000', grid: '#ccc' };
  it('is well formed, with every line and name, and names are text', () => {
    const name = '<script>alert("1 & 2")</script>\u0007';
    const svg = svgOf(
      'loss',
      '',
      content([curve('a', [4, 0, 2, Number.NaN], { name })]),
      colours,
    ).svg;
    expect(svg).not.toContain('<script');
    expect(svg).toContain('&lt;script&gt;alert(&quot;1 &amp; 2&quot;)&lt;/script&gt;');
    expect(svg.match(/<path [^>]*stroke="#2563eb" stroke-width="1.5"/g)?.length).toBe(2);
    expect(svg).not.toContain('NaN');
    for (const tag of ['svg', 'text']) {
      const opened = svg.match(new RegExp(`<${tag}[ >]`, 'g'))?.length;
      expect(svg.match(new RegExp(`</${tag}>`, 'g'))?.length).toBe(opened);
    }
  });
  it('has a hollow mark at the bottom for what a log axis cannot show', () => {
    const svg = (values: number[]) => svgOf('loss', '', content([curve('a', values)]), colours).svg;
    const marks = /<circle [^>]*fill="none"/g;
    expect(svg([4, 0, -2, 2]).match(marks)?.length).toBe(2);
    expect(svg([4, 1, 1, 2]).match(marks)).toBeNull();
  });
  it('breaks the line at a gap, and not where a point is missing', () => {
    const svg = svgOf('loss', '', content([curve('a', [4, 0, 2, 3])]), colours).svg;
    const path = /<path d="([^"]*)" fill="none"/.exec(svg)?.[1] ?? '';
    expect(path.match(/M/g)?.length).toBe(2);
  });
  it('draws nothing of an empty chart but its frame', () => {
    expect(svgOf('empty', '', content([]), colours).svg).not.toContain('NaN');
  });
});
