// What the axes span and where they have ticks.

/**
 * The steps that the x axis spans: the whole planned length, so that a curve is seen to grow; but
 * a curve never fills less than an eighth of a long one.
 */
export function stepRange(lastStep: number, plannedSteps: number): [number, number] {
  const planned = Math.max(plannedSteps, lastStep, 1);
  return [0, planned <= 1000 ? planned : Math.min(planned, Math.max(1000, 8 * lastStep))];
}

/** Limits of a log axis: a little more than the values, and at least a third of a decade. */
export function logRange(smallest: number, largest: number): [number, number] {
  const low = Math.log10(smallest);
  const high = Math.log10(largest);
  const margin = Math.max(0.04 * (high - low), (0.34 - (high - low)) / 2);
  return [10 ** (low - margin), 10 ** (high + margin)];
}

/** Ticks of a log axis: decades; with fewer than three of them also 2 and 5, within one all nine. */
export function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const mantissas =
    decades > 3 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const every = Math.max(1, Math.ceil(decades / 9));
  const ticks: number[] = [];
  const last = Math.floor(Math.log10(high));
  for (let exponent = Math.floor(Math.log10(low)); exponent <= last; exponent++) {
    if (exponent % every !== 0) continue;
    for (const mantissa of mantissas) {
      // By text, since 3 * 10 ** -2 is 0.030000000000000002 in some exponents.
      const tick = Number(`${mantissa}e${exponent}`);
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

/** Limits of a linear axis: a little more than the values. */
export function linearRange(smallest: number, largest: number): [number, number] {
  const margin = 0.04 * (largest - smallest) || 0.1 * Math.abs(largest) || 1;
  return [smallest - margin, largest + margin];
}

/** Round numbers within the limits, at most about so many. */
export function linearTicks(low: number, high: number, most: number): number[] {
  const rough = (high - low) / Math.max(1, most);
  if (!(rough > 0)) return [low];
  const exponent = Math.floor(Math.log10(rough));
  const mantissa = [1, 2, 5, 10].find((one) => one * 10 ** exponent >= rough * 0.999) ?? 10;
  const step = Number(`${mantissa}e${exponent}`);
  const ticks: number[] = [];
  for (let index = Math.ceil(low / step); index * step <= high; index++) {
    ticks.push(index === 0 ? 0 : Number((index * step).toPrecision(12)));
  }
  return ticks;
}
