// Asks the server about a draft, a moment after it changed, and keeps the answer to the latest: what
// is wrong by field, or what would be submitted.
import { batch, signal } from '@preact/signals';
import { ApiError, type FieldProblem } from '../api/client';
import type { RunJson } from '../gen/normlab/v1/run_pb';

export interface Answer {
  /** What would be submitted; empty while something is wrong. */
  runs: readonly RunJson[];
  problems: readonly FieldProblem[];
  /** What is wrong beside fields, in words; '' for nothing. */
  problem: string;
}

const pauseMilliseconds = 250;
const retryMilliseconds = 3_000;

export class SubmitCheck {
  readonly answer = signal<Answer | undefined>(undefined);
  /** The answer is to what was asked last. */
  readonly isCurrent = signal(false);
  private round = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly validate: (body: unknown, preset: boolean) => Promise<RunJson[]>) {}

  ask(body: unknown, isPreset: boolean): void {
    this.isCurrent.value = false;
    clearTimeout(this.timer);
    const round = ++this.round;
    this.timer = setTimeout(() => this.send(round, body, isPreset), pauseMilliseconds);
  }

  stop(): void {
    this.round++;
    clearTimeout(this.timer);
  }

  private send(round: number, body: unknown, isPreset: boolean): void {
    this.validate(body, isPreset).then(
      (runs) => this.take(round, { runs, problems: [], problem: '' }),
      (error: unknown) => {
        const answer = answerOf(error);
        // What the server refuses it would refuse again; else it is away.
        if (error instanceof ApiError || round !== this.round) {
          this.take(round, answer);
          return;
        }
        const problem = `the server could not be asked (${answer.problem}); trying again`;
        this.take(round, { ...answer, problem });
        this.isCurrent.value = false;
        this.timer = setTimeout(() => this.send(round, body, isPreset), retryMilliseconds);
      },
    );
  }

  private take(round: number, answer: Answer): void {
    if (round !== this.round) return;
    batch(() => {
      this.answer.value = answer;
      this.isCurrent.value = true;
    });
  }
}

export function answerOf(error: unknown): Answer {
  const problems = error instanceof ApiError ? error.details : [];
  const words = error instanceof Error ? error.message : String(error);
  return { runs: [], problems, problem: problems.length > 0 ? '' : words };
}
