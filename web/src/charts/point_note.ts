// What is written below a chart: how many points there are, how many of them are drawn, and what
// curves cannot show.
import { exactWord, formatCount } from '../format/format';
import type { Series } from '../state/curve';
import type { YMode } from './chart_data';

export function pointNote(curves: readonly Series[], y: YMode = 'log'): string {
  const first = curves[0];
  if (!first) return '';
  const held = sum(curves, (curve) => curve.steps.length);
  const total = sum(curves, (curve) => curve.total);
  const alike = curves.every(
    (curve) => curve.total === first.total && curve.steps.length === first.steps.length,
  );
  const inRuns = curves.length === 1 ? '' : alike ? ' each' : ` in ${curves.length} runs`;
  const [drawn, all] = alike ? [first.steps.length, first.total] : [held, total];
  const parts = [
    drawn === all
      ? `${formatCount(drawn)} of ${formatCount(all)} points${inRuns}`
      : `${formatCount(all)} points${inRuns}, ${formatCount(drawn)} drawn, extremes kept`,
  ];
  const broken = sum(curves, (curve) => curve.nonFinite);
  if (broken > 0) {
    const from = Math.min(...curves.map((curve) => curve.firstNonFiniteStep ?? Infinity));
    parts.push(`⚡\uFE0E ${kinds(curves, broken)}, first at step ${formatCount(from)}`);
  }
  const offScale = sum(curves, (curve) => curve.offLogAxis);
  if (offScale > 0 && y === 'log')
    // Of those that were thinned away nothing is known.
    parts.push(
      `${drawn === all ? '' : 'at least '}${formatCount(offScale)} at or below zero, off the log axis`,
    );
  return parts.join(' · ');
}

// 2 NaN, 1 +Infinity; of points that are not all here only the number is known.
function kinds(curves: readonly Series[], count: number): string {
  const held = curves.flatMap((curve) => curve.values.filter((value) => !Number.isFinite(value)));
  if (held.length !== count) return `${formatCount(count)} not finite`;
  return [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    .map(
      (kind) => [held.filter((value) => Object.is(value, kind)).length, exactWord(kind)] as const,
    )
    .filter(([found]) => found > 0)
    .map(([found, word]) => `${formatCount(found)} ${word}`)
    .join(', ');
}

function sum(curves: readonly Series[], value: (curve: Series) => number): number {
  return curves.reduce((total, curve) => total + value(curve), 0);
}
