// All runs that this page has heard of, as the server last told them: by lists and by the event
// stream. Which of them a table lists is run_query.ts's to say.
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

  /** Whoever reads one that is not here is told when runs have come. */
  get(id: string): RunJson | undefined {
    const run = this.runs.get(id);
    if (!run) this.ids.value;
    return run?.value;
  }

  /** What runs are grouped by, read without making the reader depend on progress. */
  peek(id: string): RunJson | undefined {
    return this.runs.get(id)?.peek();
  }

  /** Take before asking for a list, and give back with the answer. */
  mark(): number {
    return this.clock;
  }

  /** Takes a list, or a part of one; what events said after `mark` is newer than it. */
  takeList(list: readonly RunJson[], mark: number): void {
    for (const run of list) {
      if (!run.id) continue;
      const isNews = (this.changed.get(run.id) ?? 0) <= mark;
      // An archived run comes only when an address names it, whatever was said before.
      if (isNews || (run.archived && !this.runs.has(run.id))) this.set(run.id, run);
    }
    this.updateIds();
  }

  /** Forgets a run that the server does not have (any more). */
  forget(id: string): void {
    this.remove(id);
  }

  /**
   * Takes an event, and returns the id of a run that it takes away: a deleted one, or one that is
   * archived from now on. One that was archived already is here because somebody asked for it.
   */
  takeEvent(event: StreamEvent): string | undefined {
    switch (event.kind) {
      case 'run':
      case 'end': {
        const { id, archived } = event.run;
        if (!id) return;
        if (archived && !this.peek(id)?.archived) return this.remove(id);
        const isNew = !this.runs.has(id);
        this.set(id, event.run);
        this.changed.set(id, ++this.clock);
        if (isNew) this.addId(id);
        return;
      }
      case 'deleted':
        return this.remove(event.run);
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

  // Its time is noted as well: a list that was asked for before still has it.
  private remove(id: string): string | undefined {
    this.changed.set(id, ++this.clock);
    if (!this.runs.delete(id)) return undefined;
    this.updateIds();
    return id;
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

  // Nearly always the newest; a thousand of them may come at once.
  private addId(id: string): void {
    const before = this.ids.peek();
    if (before[0] === undefined || id > before[0]) this.ids.value = [id, ...before];
    else this.updateIds();
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
