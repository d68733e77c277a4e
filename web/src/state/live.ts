// Everything that a logged-in page knows, kept up to date: wires the API's lists, the event stream
// and the curves together.
import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { ApiError, Client } from '../api/client';
import type { StreamListener, StreamStatus } from '../api/event_stream';
import type { StreamEvent } from '../api/events';
import { StreamClient } from '../api/stream_client';
import { assignLooks, type LineLook } from '../charts/palette';
import type { ExperimentJson } from '../gen/normlab/v1/experiment_service_pb';
import { stepsBehind } from './behind';
import type { CurveSet } from './curve_set';
import { type CurveStore, drawnSeries } from './curve_store';
import { type FollowedPage, Follower } from './follower';
import { abandonedParts } from './lineage';
import { ReadOnce } from './read_once';
import { address } from './router';
import { type Group, groupRuns, RunList } from './run_list';
import { type Question, RunQuery } from './run_query';
import { deselect, select, selected, selectionIsMade } from './selection';
import type { Setting } from './settings';
import { TrendStore, trendPoints } from './trends';

// More than a chart has pixels across; what lies between is asked for by zooming in.
const maxPoints = 2000;
const retryMilliseconds = 3_000;
export const maxDrawn = 100;

export class Live implements StreamListener {
  readonly runs = new RunList();
  readonly experiments = signal<ReadonlyMap<string, ExperimentJson>>(new Map());
  readonly connection = signal<StreamStatus>({ kind: 'connecting' });
  /** The runs that the table lists. */
  readonly query: RunQuery;
  /** Why experiments and user could not be read, in words; empty when they could. */
  readonly problem = signal('');
  /** What is wrong with the server just now, in sentences. */
  readonly notices = signal<readonly string[]>([]);
  /** Name of whoever is logged in. */
  readonly user = signal('');
  /** viewer, member or admin; '' until it is known. */
  readonly role = signal('');
  readonly client: Client;
  readonly curves: CurveStore;
  /** The same curves with detail where they are zoomed. */
  readonly drawnCurves: CurveSet;
  readonly groups = computed(() =>
    groupRuns(this.query.ids.value, (id) => this.runs.peek(id)?.experiment),
  );
  /** The selected runs that exist. */
  readonly chosen = computed(() => {
    const known = new Set(this.runs.ids.value);
    return selected.value.filter((run) => known.has(run));
  });
  /** Those of them that charts draw: more curves than this tell nobody anything. */
  readonly drawn = computed(() => this.chosen.value.slice(0, maxDrawn));
  /** Steps of drawn runs that the server has and that are not here yet. */
  readonly behind = computed(() => {
    this.curves.version.value;
    return this.drawn.value.reduce(
      (sum, id) =>
        sum + stepsBehind(this.runs.get(id) ?? {}, this.curves.curve(id), this.curves.loading(id)),
      0,
    );
  });
  readonly looks = signal<ReadonlyMap<string, LineLook>>(new Map());
  readonly trends: TrendStore;
  /** Goes up when a run comes, goes, or changes other than by training on: queues change then. */
  readonly stateChanges = signal(0);
  /** The declared settings, for whoever calls `needSettings`. */
  readonly settingsRead = new ReadOnce<readonly Setting[]>([], () => this.client.listSettings());
  readonly settings = this.settingsRead.value;
  /** Why runs that an address names could not be read, in words, by their ids. */
  readonly unread = signal<ReadonlyMap<string, string>>(new Map());
  /** Runs that an address names and that do not exist (any more). */
  readonly absent = signal<ReadonlySet<string>>(new Set());
  /** Runs that the present view was to draw and that are gone: its address names them no more. */
  readonly dropped = signal<ReadonlySet<string>>(new Set());

  private readonly stream: StreamClient;
  /** Runs and experiments that were asked for one by one, so that each is asked for once. */
  private readonly asked = new Set<string>();
  private readonly followers = new Set<Follower>();
  private readonly followedPage: FollowedPage = {
    readSeries: (...wanted) => this.client.readSeries(...wanted),
    abandonedParts: (run) => abandonedParts(this.runs.peek(run)?.attempts ?? []),
    latestAttempt: (run) =>
      Math.max(0, ...(this.runs.peek(run)?.attempts ?? []).map((a) => a.number ?? 0)),
    missing: (run) => this.forget(run),
    rewatch: () => this.stream.watch([...new Set([...this.followers].flatMap((one) => one.runs))]),
  };
  private adopted: Group | undefined;
  private asking: Question | undefined;
  private readonly stopEffects: (() => void)[];
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  /** Of runs that are to be read again. */
  private readonly retries = new Set<ReturnType<typeof setTimeout>>();

  constructor(
    token: string,
    private readonly onUnauthorized: () => void,
  ) {
    this.client = new Client(token, onUnauthorized);
    const drawnFollower = this.follow(drawnSeries, maxPoints);
    this.drawnCurves = drawnFollower.curves;
    this.curves = this.drawnCurves.store;
    this.query = new RunQuery({
      list: (question, size, pageToken) => this.client.listRuns(question, size, pageToken),
      take: (runs, mark) => this.runs.takeList(runs, mark),
      mark: () => this.runs.mark(),
    });
    this.trends = new TrendStore((run, signal) =>
      this.client.readSeries(run, ['loss'], trendPoints, signal).then((columns) => columns.loss),
    );
    this.stream = new StreamClient(token, this);
    this.readLists();
    const view = computed(() => address.value.view);
    this.stopEffects = [
      effect(() => {
        view.value;
        this.dropped.value = new Set();
      }),
      effect(() => {
        drawnFollower.keep(this.drawn.value);
      }),
      effect(() => {
        this.looks.value = assignLooks(
          this.drawn.value,
          this.looks.peek(),
          (id) => this.runs.peek(id)?.colour || undefined,
        );
      }),
      effect(() => this.askForRuns()),
      effect(() => this.adoptNewest()),
      effect(() => this.readUnlistedRuns()),
    ];
  }

  close(): void {
    for (const stop of this.stopEffects) stop();
    clearTimeout(this.retryTimer);
    for (const timer of this.retries) clearTimeout(timer);
    this.query.stop();
    this.trends.stop();
    this.settingsRead.stop();
    for (const follower of this.followers) follower.stop();
    this.stream.close();
  }

  /** Reads more series of some runs and keeps them up to date; `stop` it when it is not needed. */
  follow(names: readonly string[], maxPoints: number): Follower {
    const follower = new Follower(this.followedPage, names, maxPoints, (one) =>
      this.followers.delete(one),
    );
    this.followers.add(follower);
    return follower;
  }

  events(events: StreamEvent[]): void {
    batch(() => {
      for (const event of events) {
        const gone = this.runs.takeEvent(event);
        if (gone !== undefined) this.drop(gone);
        this.query.takeEvent(event);
        this.trends.takeEvent(event);
        for (const follower of this.followers) follower.takeEvent(event);
        if (event.kind === 'notice') this.notices.value = event.problems;
        if (event.kind !== 'points' && event.kind !== 'progress') this.stateChanges.value++;
        if (event.kind === 'run') this.readUnlistedExperiment(event.run.experiment);
      }
    });
  }

  status(status: StreamStatus): void {
    this.connection.value = status;
    if (status.kind === 'live') this.readUnlistedRuns(); // what could not be read while offline
    if (status.kind === 'unauthorized') this.onUnauthorized();
  }

  covered(runs: string[]): void {
    for (const { curves } of this.followers) curves.store.covered(runs);
  }

  reset(): void {
    for (const { curves } of this.followers) curves.store.reset();
    this.trends.reset();
    if (this.asking) this.query.again();
    this.readLists();
    // A run that was deleted meanwhile would be watched in vain.
    for (const id of this.drawn.peek()) this.readRun(id);
  }

  // The list is asked for when it is first shown, and then whenever its question changes.
  private askForRuns(): void {
    const { view, query } = address.value;
    this.query.show(view === 'runs');
    if (view !== 'runs') return;
    const question = { filter: query.filter ?? '', order: query.order ?? '' };
    const before = this.asking;
    if (before?.filter === question.filter && before.order === question.order) return;
    this.asking = question;
    untracked(() => this.query.ask(question));
  }

  /** Reads a run that an address names, if it is not known yet. */
  needRun(id: string): void {
    if (id === '' || this.runs.peek(id)) return;
    if (this.absent.peek().has(id)) this.drop(id);
    if (this.asked.has(id)) return;
    this.asked.add(id);
    this.readRun(id);
  }

  private readRun(id: string): void {
    const mark = this.runs.mark();
    this.client.getRun(id).then(
      (run) => {
        this.setUnread(id, undefined);
        this.runs.takeList([run], mark);
      },
      (error: unknown) => {
        const isAbsent = error instanceof ApiError && error.code === 404;
        this.setUnread(id, isAbsent ? undefined : wordsOf(error));
        if (isAbsent) this.forget(id);
        else this.readRunLater(id);
      },
    );
  }

  // Only while somebody wants it.
  private readRunLater(id: string): void {
    const timer = setTimeout(() => {
      this.retries.delete(timer);
      if (selected.peek().includes(id)) this.readRun(id);
      else this.asked.delete(id);
    }, retryMilliseconds);
    this.retries.add(timer);
  }

  private setUnread(id: string, problem: string | undefined): void {
    if (this.unread.peek().get(id) === problem) return;
    const unread = new Map(this.unread.peek());
    if (problem === undefined) unread.delete(id);
    else unread.set(id, problem);
    this.unread.value = unread;
  }

  private forget(id: string): void {
    batch(() => {
      this.absent.value = new Set([...this.absent.peek(), id]);
      this.runs.forget(id);
      this.query.takeEvent({ kind: 'deleted', run: id });
      this.drop(id);
    });
  }

  private drop(id: string): void {
    if (!selected.peek().includes(id)) return;
    this.dropped.value = new Set([...this.dropped.peek(), id]);
    deselect(id);
  }

  needSettings(): void {
    this.settingsRead.need();
  }

  private readLists(): void {
    clearTimeout(this.retryTimer);
    Promise.all([this.client.listExperiments(), this.client.getMe()]).then(
      ([experiments, me]) =>
        batch(() => {
          this.experiments.value = new Map(experiments.map((one) => [one.id ?? '', one]));
          this.user.value = me.name ?? '';
          this.role.value = me.role ?? '';
          this.problem.value = '';
        }),
      (error: unknown) => {
        this.problem.value = wordsOf(error);
        if (error instanceof ApiError && error.code === 401) return;
        this.retryTimer = setTimeout(() => this.readLists(), retryMilliseconds);
      },
    );
  }

  private readUnlistedExperiment(id: string | undefined): void {
    if (!id || this.experiments.peek().has(id) || this.asked.has(id)) return;
    this.asked.add(id);
    this.client.listExperiments().then(
      (experiments) => {
        this.experiments.value = new Map(experiments.map((one) => [one.id ?? '', one]));
      },
      () => this.asked.delete(id),
    );
  }

  // An address may name runs that are in no list.
  private readUnlistedRuns(): void {
    const isList = address.value.view === 'runs';
    if (isList && !this.query.listed.value && !this.query.refused.value) return;
    this.runs.ids.value; // after runs came or went
    // One that is not there (any more) is simply not drawn.
    for (const id of selected.value) this.needRun(id);
  }

  // A page opened without a choice shows what was started last, with the runs that still join it;
  // from then on only people choose, so that nobody's view jumps when a colleague submits.
  private adoptNewest(): void {
    if (!this.query.listed.value || address.value.view !== 'runs') return;
    const groups = this.groups.value;
    if (!selectionIsMade.value) {
      this.adopted = groups[0];
      if (this.adopted) select(this.adopted.runs);
      return;
    }
    const adopted = this.adopted;
    if (!adopted?.experiment || selected.value.join() !== adopted.runs.join()) return;
    const now = groups.find((group) => group.experiment === adopted.experiment);
    if (!now || now.runs.length === adopted.runs.length) return;
    this.adopted = now;
    select(now.runs);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
