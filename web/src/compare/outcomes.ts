// What runs amount to, in numbers that can be compared.
import type { RunJson } from '../gen/normlab/v1/run_pb';
import { quantile } from '../series/derived';

export interface OutcomeKind {
  name: string;
  title: string;
  unit: string;
  of(run: RunJson): number | undefined;
}

// JSON has NaN and the infinities as text.
function number(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
}

export const outcomes: readonly OutcomeKind[] = [
  {
    name: 'final_loss',
    title: 'final loss',
    unit: 'nats per token, at the last step stored',
    of: (run) => number(run.summary?.finalLoss),
  },
  {
    name: 'min_loss',
    title: 'lowest loss',
    unit: 'nats per token',
    of: (run) => number(run.summary?.minLoss),
  },
  {
    name: 'max_gradient_norm',
    title: 'largest grad norm',
    unit: 'L2 norm over all parameters, before clipping',
    of: (run) => number(run.summary?.maxGradientNorm),
  },
  {
    name: 'final_gradient_norm',
    title: 'final grad norm',
    unit: 'L2 norm over all parameters, before clipping',
    of: (run) => number(run.summary?.finalGradientNorm),
  },
  {
    name: 'first_bad_step',
    title: 'first bad step',
    unit: 'first step whose loss or gradient norm is not finite',
    of: (run) => number(run.summary?.firstBadStep) || undefined,
  },
];

export function findOutcome(name: string | undefined): OutcomeKind {
  return outcomes.find((kind) => kind.name === name) ?? (outcomes[0] as OutcomeKind);
}

export interface Spread {
  median: number;
  low: number;
  high: number;
  count: number;
}

/**
 * Over the runs that have a value; beside others one that is NaN is the worst, and alone itself.
 * undefined: none has.
 */
export function spreadOf(kind: OutcomeKind, runs: readonly RunJson[]): Spread | undefined {
  const values = runs.flatMap((run) => kind.of(run) ?? []);
  if (values.length === 0) return undefined;
  const [only] = values;
  if (values.length === 1 && only !== undefined) {
    return { median: only, low: only, high: only, count: 1 };
  }
  const sorted = values.map((value) => (Number.isNaN(value) ? Infinity : value));
  sorted.sort((a, b) => a - b);
  return {
    median: quantile(sorted, 0.5),
    low: sorted[0] as number,
    high: sorted.at(-1) as number,
    count: values.length,
  };
}
