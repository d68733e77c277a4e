// All runs as the server last told them, from the list and from the event stream.
import { type Signal, signal } from '@preact/signals';
import type { StreamEvent } from '../api/events';
import type { RunJson } from '../gen/normlab/v1/run_pb';

export class RunList {
  /** Ids, newest first. Changes only when runs come or go. */
  readonly ids = signal<string[]>([]);
  private readonly runs = new Map<string, Signal<RunJson>>();
  // Counts events, to tell which came after a list was asked for.
  private clock = 0;
  private readonly changed = new Map<string, number>();

  get(id: string): RunJson | undefined {
    return this.runs.get(id)?.value;
  }

  /** What runs are grouped by, read without making the reader depend on progress. */
  peek(id: string): RunJson | undefined {
    return this.runs.get(id)?.peek();
  }

  /** Take before asking for a list, and give to `takeList` with the answer. */
  mark(): number {
    return this.clock;
  }

  /** Takes a list; what events said after `mark` is newer than it. `whole`: others are gone. */
  takeList(list: readonly RunJson[], mark: number, whole: boolean): void {
    const listed = new Set<string>();
    for (const run of list) {
      if (!run.id) continue;
      listed.add(run.id);
      if ((this.changed.get(run.id) ?? 0) <= mark) this.set(run.id, run);
    }
    if (whole) {
      for (const id of this.runs.keys()) {
        if (!listed.has(id) && (this.changed.get(id) ?? 0) <= mark) this.runs.delete(id);
      }
    }
    this.updateIds();
  }

  takeEvent(event: StreamEvent): void {
    switch (event.kind) {
      case 'run':
      case 'end':
        if (!event.run.id) return;
        this.set(event.run.id, event.run);
        this.changed.set(event.run.id, ++this.clock);
        this.updateIds();
        return;
      case 'progress':
        this.amend(event.run, (run) => ({
          ...run,
          progress: event.progress,
          ...(event.summary && { summary: event.summary }),
        }));
        return;
      case 'attempt':
        this.amend(event.run, (run) => {
          const others = (run.attempts ?? []).filter((a) => a.number !== event.attempt.number);
          return { ...run, attempts: [...others, event.attempt] };
        });
        return;
    }
  }

  private amend(id: string, change: (run: RunJson) => RunJson): void {
    const run = this.runs.get(id);
    if (!run) return;
    run.value = change(run.peek());
    this.changed.set(id, ++this.clock);
  }

  private set(id: string, run: RunJson): void {
    const known = this.runs.get(id);
    if (known) known.value = run;
    else this.runs.set(id, signal(run));
  }

  private updateIds(): void {
    const before = this.ids.peek();
    if (before.length === this.runs.size && before.every((id) => this.runs.has(id))) return;
    // ULIDs sort by time.
    this.ids.value = [...this.runs.keys()].sort((a, b) => (a < b ? 1 : -1));
  }
}

/** A row of the table: an experiment with its runs, or a run on its own. */
export interface Group {
  experiment: string | undefined;
  runs: string[];
}

/** Groups newest first; inside an experiment, its runs in the order they were made. */
export function groupRuns(
  ids: readonly string[],
  experimentOf: (id: string) => string | undefined,
): Group[] {
  const groups: Group[] = [];
  const byExperiment = new Map<string, Group>();
  for (const id of ids) {
    const experiment = experimentOf(id) || undefined;
    let group = experiment === undefined ? undefined : byExperiment.get(experiment);
    if (!group) {
      group = { experiment, runs: [] };
      groups.push(group);
      if (experiment !== undefined) byExperiment.set(experiment, group);
    }
    group.runs.push(id);
  }
  for (const group of groups) group.runs.reverse();
  return groups;
}
