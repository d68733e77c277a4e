// The note in a chart's corner: how many points there are and how many of them are drawn.
import { formatCount } from '../format/format';
import type { Series } from '../state/curve';

export function pointNote(curves: readonly Series[]): string {
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
    parts.push(`⚡\uFE0E ${formatCount(broken)} not finite, first at step ${formatCount(from)}`);
  }
  const offScale = sum(curves, (curve) => curve.offLogAxis);
  if (offScale > 0) parts.push(`${formatCount(offScale)} at or below zero, off the log axis`);
  return parts.join(' · ');
}

function sum(curves: readonly Series[], value: (curve: Series) => number): number {
  return curves.reduce((total, curve) => total + value(curve), 0);
}
