// Fewer points for the same picture: of each bucket the first, the last, the smallest and the
// largest stay, so a spike at one step in a million is still drawn. The same rule as the server's.

export function thin(
  steps: readonly number[],
  values: readonly number[],
  maxPoints: number,
): { steps: number[]; values: number[] } {
  const count = steps.length;
  if (count <= maxPoints) return { steps: [...steps], values: [...values] };
  const buckets = Math.max(1, Math.floor(maxPoints / 5));
  const kept: { steps: number[]; values: number[] } = { steps: [], values: [] };
  for (let bucket = 0; bucket < buckets; bucket++) {
    const begin = Math.floor((bucket * count) / buckets);
    const end = Math.floor(((bucket + 1) * count) / buckets);
    const wanted = new Set([begin, end - 1]);
    let smallest = -1;
    let largest = -1;
    let broken = -1;
    for (let index = begin; index < end; index++) {
      const value = values[index] as number;
      if (!Number.isFinite(value)) {
        // A gap in the curve has to stay a gap.
        if (broken < 0) broken = index;
        continue;
      }
      if (smallest < 0 || value < (values[smallest] as number)) smallest = index;
      if (largest < 0 || value > (values[largest] as number)) largest = index;
    }
    for (const index of [smallest, largest, broken]) if (index >= 0) wanted.add(index);
    for (const index of [...wanted].sort((a, b) => a - b)) {
      kept.steps.push(steps[index] as number);
      kept.values.push(values[index] as number);
    }
  }
  return kept;
}
