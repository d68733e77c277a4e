// The events of GET /api/v1/events, as the page uses them.
import type { AttemptJson, ProgressJson, RunJson, SummaryJson } from '../gen/normlab/v1/run_pb';
import type { SseMessage } from './sse';

/** Points of one series on the wire; non-finite values are the strings "NaN", "Infinity", … */
export interface WireColumn {
  steps: number[];
  values: (number | string)[];
}

/** One series of GET /api/v1/runs/{id}/series: perhaps a part of its points, extremes kept. */
export interface SeriesAnswer extends WireColumn {
  totalPoints: number;
  nonFinitePoints: number;
  firstNonFiniteStep?: number;
}

export type StreamEvent =
  | { kind: 'run'; run: RunJson }
  | { kind: 'attempt'; run: string; attempt: AttemptJson }
  | { kind: 'points'; run: string; attempt: number; columns: Record<string, WireColumn> }
  | { kind: 'progress'; run: string; progress: ProgressJson; summary?: SummaryJson }
  | { kind: 'gap'; run: string; nextStep: number }
  | { kind: 'end'; run: RunJson }
  | { kind: 'deleted'; run: string }
  /** What is wrong with the server, one sentence a problem; none: all is well again. */
  | { kind: 'notice'; problems: string[] };

/** The run that an event is about; '' for a notice. */
export function runOf(event: StreamEvent): string {
  if (event.kind === 'notice') return '';
  return event.kind === 'run' || event.kind === 'end' ? (event.run.id ?? '') : event.run;
}

/** undefined for a heartbeat and for kinds of a newer server. */
export function decodeEvent(message: SseMessage): StreamEvent | undefined {
  const data = JSON.parse(message.data);
  switch (message.event) {
    case 'run':
      return { kind: 'run', run: data };
    case 'end':
      return { kind: 'end', run: data.run ?? {} };
    case 'attempt':
      return { kind: 'attempt', run: data.run ?? '', attempt: data.attempt ?? {} };
    case 'progress':
      return {
        kind: 'progress',
        run: data.run ?? '',
        progress: data.progress ?? {},
        ...(data.summary && { summary: data.summary }),
      };
    case 'gap':
      return { kind: 'gap', run: data.run ?? '', nextStep: Number(data.nextStep ?? 0) };
    case 'points':
      return {
        kind: 'points',
        run: data.run ?? '',
        attempt: data.attempt ?? 1,
        columns: data.columns ?? {},
      };
    case 'deleted':
      return { kind: 'deleted', run: data.run ?? '' };
    case 'notice':
      return { kind: 'notice', problems: data.problems ?? [] };
    default:
      return undefined;
  }
}

export function toNumber(value: number | string): number {
  return typeof value === 'number' ? value : Number(value);
}
