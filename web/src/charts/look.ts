// How the charts of a view are drawn, as its address says it:
//   y=linear   by=tokens|time   smooth=30   (steps)
import { computed } from '@preact/signals';
import { type XMode, xModes } from '../series/x_axis';
import { address, setQuery } from '../state/router';
import { type ChartLook, plainLook } from './lines';

export function parseLook(query: Readonly<Record<string, string>>): ChartLook {
  const halfLife = Number(query.smooth ?? 0);
  return {
    y: query.y === 'linear' ? 'linear' : plainLook.y,
    x: xModes.find((mode) => mode === query.by) ?? plainLook.x,
    halfLife: Number.isFinite(halfLife) && halfLife > 0 ? halfLife : 0,
  };
}

/** The look of the present view. */
export const look = computed(() => parseLook(address.value.query));

export function setLook(change: Partial<ChartLook>): void {
  const query: Record<string, string | undefined> = {};
  if (change.y) query.y = change.y === plainLook.y ? undefined : change.y;
  if (change.halfLife !== undefined) {
    query.smooth = change.halfLife > 0 ? String(change.halfLife) : undefined;
  }
  if (change.x) {
    query.by = change.x === plainLook.x ? undefined : change.x;
    // What is zoomed to is in other units now.
    query.x = undefined;
  }
  setQuery(query);
}

export function modeOf(text: string): XMode {
  return xModes.find((mode) => mode === text) ?? 'step';
}
