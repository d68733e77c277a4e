// The runs that a filter names, in an order, read page by page as somebody scrolls, and kept true
// by the event stream: what the table lists.
//
// Without a filter and an order, an event says all that is needed. With a filter, the server is
// asked whether it still names the runs that changed, in one request for many of them. With an
// order, what was read is read again. Both a moment later, together for all that changed.
import { batch, signal } from '@preact/signals';
import { ApiError } from '../api/client';
import { runOf, type StreamEvent } from '../api/events';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import type { ListRunsResponseJson } from '../gen/normlab/v1/run_service_pb';

export interface Question {
  /** In the server's language; '': every run that is not archived. */
  filter: string;
  /** "final_loss desc"; '': newest first. */
  order: string;
}

export interface QuerySource {
  list(question: Question, size: number, pageToken: string): Promise<ListRunsResponseJson>;
  /** Takes runs into what the page knows; `mark` is what `mark()` gave before they were asked for. */
  take(runs: readonly RunJson[], mark: number): void;
  mark(): number;
}

export const pageSize = 200;
/** When runs are read again by themselves, no more than these; the rest comes by scrolling. */
const rereadLimit = 1000;
const largestPage = 1000;
/** Ids in one request: a filter has at most 100 conditions and 4,000 bytes. */
const checkedAtOnce = 40;
const retryMilliseconds = 3_000;
/** From a change to asking about it. Progress comes several times a second and changes little. */
const changeMilliseconds = 300;
const progressMilliseconds = 10_000;
/** In an ordered list all that was read is read again, which is more than asking about some runs. */
const reorderMilliseconds = 30_000;

export class RunQuery {
  /** In the order asked for; those read so far. */
  readonly ids = signal<readonly string[]>([]);
  /** Runs there are, also those not read yet. */
  readonly total = signal(0);
  /** False until an answer to the present question is there; until then `ids` is of the last one. */
  readonly listed = signal(false);
  /** Why the list could not be read, in words; '' when it could. */
  readonly problem = signal('');
  /** The server does not understand the question; nobody asks again. */
  readonly refused = signal(false);

  private question: Question = { filter: '', order: '' };
  private nextToken = '';
  /** Counts requests for whole lists, so that an answer to an earlier one is known as such. */
  private round = 0;
  private reading: Promise<void> | undefined;
  /** While a list is awaited: what events said of runs meanwhile. */
  private since: Map<string, RunJson | undefined> | undefined;
  private readonly changed = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private timerAt = 0;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private isShown = true;

  constructor(
    private readonly source: QuerySource,
    private readonly now: () => number = Date.now,
  ) {}

  /** Asks something else. What was listed stays until the answer is there. */
  ask(question: Question): void {
    this.question = question;
    this.listed.value = false;
    this.refused.value = false;
    this.changed.clear();
    this.read(pageSize);
  }

  /** Events may have been missed: reads again what was read. */
  again(): void {
    this.read(Math.max(pageSize, Math.min(this.ids.peek().length, rereadLimit)));
  }

  /** Reads the next page, if there is one. */
  more(): void {
    if (this.nextToken === '' || this.reading || this.since) return;
    clearTimeout(this.retryTimer);
    const round = this.round;
    this.readNext(pageSize).catch((error: unknown) => {
      if (round !== this.round) return;
      // A token that the server does not take any more: from the beginning.
      if (error instanceof ApiError && error.code === 400) {
        this.again();
        return;
      }
      this.problem.value = wordsOf(error);
      this.retryTimer = setTimeout(() => this.more(), retryMilliseconds);
    });
  }

  /**
   * Of a list without an order: whether there may be runs that are newer than this id and were not
   * read yet, such as runs of the experiment that has it.
   */
  isPartDownTo(id: string): boolean {
    const ids = this.ids.value;
    return ids.length < this.total.value && (ids.at(-1) ?? '') > id;
  }

  /**
   * Reads on until all runs newer than this id are here, or `limit` runs are; throws when that
   * cannot be. False: there may be more of them.
   */
  async readDownTo(id: string, limit: number): Promise<boolean> {
    const round = this.round;
    while (this.nextToken !== '' && this.isPartDownTo(id)) {
      if (this.ids.peek().length >= limit) return false;
      await (this.reading ?? this.readNext(largestPage));
      if (round !== this.round) throw new Error('the list is being read anew; try again');
    }
    return true;
  }

  private readNext(size: number): Promise<void> {
    const round = this.round;
    const mark = this.source.mark();
    const reading = this.source
      .list(this.question, size, this.nextToken)
      .then((page) => {
        if (round !== this.round) return;
        this.nextToken = page.nextPageToken ?? '';
        this.source.take(page.runs ?? [], mark);
        const known = new Set(this.ids.peek());
        const news = idsOf(page).filter((id) => !known.has(id));
        this.ids.value = [...this.ids.peek(), ...news];
        this.problem.value = '';
      })
      .finally(() => {
        if (this.reading === reading) this.reading = undefined;
      });
    this.reading = reading;
    return reading;
  }

  /** While nobody looks at the list, changes are noted, and asked about when somebody does. */
  show(isShown: boolean): void {
    this.isShown = isShown;
    if (isShown && this.changed.size > 0) this.lookIn(0);
  }

  stop(): void {
    this.round++;
    clearTimeout(this.timer);
    clearTimeout(this.retryTimer);
  }

  takeEvent(event: StreamEvent): void {
    const id = runOf(event);
    if (event.kind === 'deleted') {
      this.since?.set(id, undefined);
      this.remove(id);
    } else if (event.kind === 'run' || event.kind === 'end') {
      this.since?.set(id, event.run);
      if (this.isPlain) this.place(id, event.run);
      else this.note(id, changeMilliseconds);
    } else if (event.kind === 'progress' && !this.isPlain) {
      this.note(id, this.question.order === '' ? progressMilliseconds : reorderMilliseconds);
    }
  }

  private get isPlain(): boolean {
    return this.question.filter === '' && this.question.order === '';
  }

  private read(wanted: number): void {
    clearTimeout(this.retryTimer);
    const round = ++this.round;
    this.reading = undefined;
    this.since = new Map();
    this.readPages(wanted, round).then(
      () => undefined,
      (error: unknown) => {
        if (round !== this.round) return;
        const isRefused = error instanceof ApiError && error.code === 400;
        batch(() => {
          this.problem.value = wordsOf(error);
          this.refused.value = isRefused;
        });
        this.since = undefined;
        if (isRefused || (error instanceof ApiError && error.code === 401)) return;
        this.retryTimer = setTimeout(() => this.read(wanted), retryMilliseconds);
      },
    );
  }

  private async readPages(wanted: number, round: number): Promise<void> {
    const ids: string[] = [];
    let token = '';
    let total = 0;
    do {
      const mark = this.source.mark();
      const size = Math.min(largestPage, Math.max(pageSize, wanted - ids.length));
      const page = await this.source.list(this.question, size, token);
      if (round !== this.round) return;
      this.source.take(page.runs ?? [], mark);
      ids.push(...idsOf(page));
      token = page.nextPageToken ?? '';
      total = Number(page.totalSize ?? ids.length);
    } while (token !== '' && ids.length < wanted);
    batch(() => {
      this.nextToken = token;
      this.ids.value = [...new Set(ids)];
      this.total.value = total;
      this.listed.value = true;
      this.problem.value = '';
      const since = this.since ?? new Map();
      this.since = undefined;
      for (const [id, run] of since) {
        if (!run) this.remove(id);
        else if (this.isPlain) this.place(id, run);
        else this.note(id, changeMilliseconds);
      }
    });
  }

  /** Into a list without filter and order: archived runs are not in it. */
  private place(id: string, run: RunJson): void {
    if (!this.listed.peek()) return;
    if (run.archived) this.remove(id);
    else this.insert(id);
  }

  // Newest first: ULIDs sort by time. What is older than all that was read comes with its page.
  private insert(id: string): void {
    const ids = this.ids.peek();
    const last = ids.at(-1);
    if (ids.includes(id) || (this.nextToken !== '' && last !== undefined && id < last)) return;
    const at = ids.findIndex((other) => other < id);
    this.ids.value = at < 0 ? [...ids, id] : [...ids.slice(0, at), id, ...ids.slice(at)];
    this.total.value++;
  }

  private remove(id: string): void {
    const ids = this.ids.peek();
    if (!ids.includes(id)) return;
    this.ids.value = ids.filter((other) => other !== id);
    this.total.value = Math.max(0, this.total.peek() - 1);
  }

  private note(id: string, milliseconds: number): void {
    this.changed.add(id);
    this.lookIn(milliseconds);
  }

  private lookIn(milliseconds: number): void {
    const at = this.now() + milliseconds;
    if (!this.isShown || (this.timer !== undefined && this.timerAt <= at)) return;
    clearTimeout(this.timer);
    this.timerAt = at;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.isShown) this.look();
    }, milliseconds);
  }

  private look(): void {
    if (!this.listed.peek() || this.since) return;
    if (this.question.order !== '') {
      this.changed.clear();
      this.again();
      return;
    }
    const ids = [...this.changed];
    this.changed.clear();
    for (let at = 0; at < ids.length; at += checkedAtOnce) {
      this.check(ids.slice(at, at + checkedAtOnce));
    }
  }

  // Which of these runs the filter names now.
  private check(ids: readonly string[]): void {
    const round = this.round;
    const mark = this.source.mark();
    const filter = `(${this.question.filter}) (${ids.map((id) => `id=${id}`).join(' OR ')})`;
    this.source.list({ filter, order: '' }, ids.length, '').then(
      (page) => {
        if (round !== this.round) return;
        this.source.take(page.runs ?? [], mark);
        const named = new Set(idsOf(page));
        batch(() => {
          this.problem.value = '';
          for (const id of ids) {
            if (named.has(id)) this.insert(id);
            else this.remove(id);
          }
        });
      },
      (error: unknown) => {
        if (round !== this.round) return;
        this.problem.value = wordsOf(error);
        for (const id of ids) this.note(id, retryMilliseconds);
      },
    );
  }
}

function idsOf(page: ListRunsResponseJson): string[] {
  return (page.runs ?? []).flatMap((run) => run.id ?? []);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
