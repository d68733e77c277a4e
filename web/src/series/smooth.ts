// A smoothed line: an exponential moving average whose weights fall by half over `halfLife` on the
// x axis, whatever the distances between the points are.
//
//   w_k = 1 - 2^(-gap_k / halfLife)             the share of a point that stands for its gap
//   s_k = sum w_i v_i 2^(-(x_k - x_i) / halfLife)  /  the same sum of w_i alone
//
// The division takes away the pull of the start (what Adam calls bias correction): a constant
// curve stays exactly what it is. For points at equal distances this is the usual average with
// the factor 2^(-1 / halfLife). A value that is not finite has no smoothed one, and leaves the
// average of those around it as it is.

export function smooth(
  xs: readonly number[],
  values: readonly number[],
  halfLife: number,
): (number | null)[] {
  if (!(halfLife > 0)) return values.map((value) => (Number.isFinite(value) ? value : null));
  let sum = 0;
  let weights = 0;
  let last: number | undefined;
  const first = firstGap(xs, values);
  return values.map((value, index) => {
    if (!Number.isFinite(value)) return null;
    const x = xs[index] as number;
    const gap = last === undefined ? first : x - last;
    last = x;
    const kept = 2 ** (-gap / halfLife);
    // 1 - kept, exact also where kept is nearly one.
    const weight = -Math.expm1((-gap * Math.LN2) / halfLife);
    sum = sum * kept + weight * value;
    weights = weights * kept + weight;
    return weights > 0 ? sum / weights : value;
  });
}

// The first point has no gap before it; it counts as much as the second one.
function firstGap(xs: readonly number[], values: readonly number[]): number {
  let first: number | undefined;
  for (let index = 0; index < xs.length; index++) {
    if (!Number.isFinite(values[index])) continue;
    const x = xs[index] as number;
    if (first !== undefined && x > first) return x - first;
    first ??= x;
  }
  return 1;
}

/** Half-lives to choose from for a run of so many steps: 3, 10, 30, ... up to a third of it. */
export function halfLives(steps: number): number[] {
  const found: number[] = [];
  for (let exponent = 0; exponent < 9; exponent++) {
    for (const mantissa of [1, 3]) {
      const halfLife = mantissa * 10 ** exponent;
      if (halfLife >= 3 && halfLife <= steps / 3) found.push(halfLife);
    }
  }
  return found;
}
