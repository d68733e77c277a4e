// Everything that a logged-in page knows, kept up to date: wires the API's lists, the event stream
// and the curves together.
import { batch, computed, effect, signal } from '@preact/signals';
import { ApiError, Client } from '../api/client';
import type { StreamListener, StreamStatus } from '../api/event_stream';
import type { StreamEvent } from '../api/events';
import { StreamClient } from '../api/stream_client';
import { assignLooks, type LineLook } from '../charts/palette';
import type { ExperimentJson } from '../gen/normlab/v1/experiment_service_pb';
import { stepsBehind } from './behind';
import { CurveStore, drawnSeries } from './curve_store';
import { abandonedParts } from './lineage';
import { address } from './router';
import { type Group, groupRuns, RunList } from './run_list';
import { deselect, select, selected, selectionIsMade } from './selection';

// More than a chart has pixels across; what lies between is asked for by zooming in.
const maxPoints = 2000;
// Of what an attempt left behind, which is drawn faintly.
const maxAbandonedPoints = 500;
const pageSize = 200;
const retryMilliseconds = 3_000;

export class Live implements StreamListener {
  readonly runs = new RunList();
  readonly experiments = signal<ReadonlyMap<string, ExperimentJson>>(new Map());
  readonly connection = signal<StreamStatus>({ kind: 'connecting' });
  /** False until the first list has come: an empty table then means that there are no runs. */
  readonly listed = signal(false);
  /** Why the lists could not be read, in words; empty when they could. */
  readonly problem = signal('');
  /** Runs there are, where older ones than those listed are left to `showMore`; else 0. */
  readonly totalRuns = signal(0);
  /** What is wrong with the server just now, in sentences. */
  readonly notices = signal<readonly string[]>([]);
  /** Name of whoever is logged in. */
  readonly user = signal('');
  /** viewer, member or admin; '' until it is known. */
  readonly role = signal('');
  readonly client: Client;
  readonly curves: CurveStore;
  readonly groups = computed(() =>
    groupRuns(this.runs.ids.value, (id) => this.runs.peek(id)?.experiment),
  );
  /** The selected runs that exist. */
  readonly drawn = computed(() => {
    const known = new Set(this.runs.ids.value);
    return selected.value.filter((run) => known.has(run));
  });
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

  private readonly stream: StreamClient;
  /** Runs and experiments that were asked for one by one, so that each is asked for once. */
  private readonly asked = new Set<string>();
  private adopted: Group | undefined;
  private wantedRuns = pageSize;
  private readonly stopEffects: (() => void)[];
  private retryTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    token: string,
    private readonly onUnauthorized: () => void,
  ) {
    this.client = new Client(token, onUnauthorized);
    this.curves = new CurveStore({
      readSeries: (run, signal, part) => {
        const points = part ? maxAbandonedPoints : maxPoints;
        return this.client.readSeries(run, drawnSeries, points, signal, part);
      },
      abandonedParts: (run) => abandonedParts(this.runs.peek(run)?.attempts ?? []),
      latestAttempt: (run) =>
        Math.max(0, ...(this.runs.peek(run)?.attempts ?? []).map((a) => a.number ?? 0)),
      missing: () => this.readLists(),
    });
    this.stream = new StreamClient(token, this);
    this.readLists();
    this.stopEffects = [
      effect(() => {
        const drawn = this.drawn.value;
        this.curves.keep(drawn);
        this.stream.watch(drawn);
      }),
      effect(() => {
        this.looks.value = assignLooks(
          this.drawn.value,
          this.looks.peek(),
          (id) => this.runs.peek(id)?.colour || undefined,
        );
      }),
      effect(() => this.adoptNewest()),
      effect(() => this.readUnlistedRuns()),
    ];
  }

  close(): void {
    for (const stop of this.stopEffects) stop();
    clearTimeout(this.retryTimer);
    this.curves.keep([]);
    this.stream.close();
  }

  events(events: StreamEvent[]): void {
    batch(() => {
      for (const event of events) {
        const gone = this.runs.takeEvent(event);
        if (gone !== undefined) deselect(gone);
        this.curves.takeEvent(event);
        if (event.kind === 'notice') this.notices.value = event.problems;
        if (event.kind === 'run') this.readUnlistedExperiment(event.run.experiment);
      }
    });
  }

  status(status: StreamStatus): void {
    this.connection.value = status;
    if (status.kind === 'unauthorized') this.onUnauthorized();
  }

  covered(runs: string[]): void {
    this.curves.covered(runs);
  }

  reset(): void {
    this.curves.reset();
    this.readLists();
  }

  showMore(): void {
    this.wantedRuns *= 2;
    this.readLists();
  }

  // Page by page from the newest on: what is added meanwhile comes by the event stream, and a
  // token goes on behind the last run of its page, so none is lost or comes twice.
  private async readRuns(): Promise<void> {
    let token = '';
    const listed: string[] = [];
    const mark = this.runs.mark();
    do {
      const page = await this.client.listRuns(pageSize, token);
      token = page.nextPageToken ?? '';
      const runs = page.runs ?? [];
      for (const run of runs) if (run.id) listed.push(run.id);
      batch(() => {
        this.runs.takeList(runs, mark);
        this.totalRuns.value = token === '' ? 0 : Number(page.totalSize ?? 0);
      });
    } while (token !== '' && listed.length < this.wantedRuns);
    this.runs.keepListed(listed, mark, token === '' ? '' : (listed.at(-1) ?? ''));
  }

  private readLists(): void {
    clearTimeout(this.retryTimer);
    Promise.all([this.readRuns(), this.client.listExperiments(), this.client.getMe()]).then(
      ([, experiments, me]) =>
        batch(() => {
          this.asked.clear();
          this.experiments.value = new Map(experiments.map((one) => [one.id ?? '', one]));
          this.user.value = me.name ?? '';
          this.role.value = me.role ?? '';
          this.listed.value = true;
          this.problem.value = '';
        }),
      (error: unknown) => {
        this.problem.value = error instanceof Error ? error.message : String(error);
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

  // A shared address may name runs older than those listed.
  private readUnlistedRuns(): void {
    if (!this.listed.value) return;
    const known = new Set(this.runs.ids.value);
    for (const id of selected.value) {
      if (known.has(id) || this.asked.has(id)) continue;
      this.asked.add(id);
      const mark = this.runs.mark();
      this.client.getRun(id).then(
        (run) => this.runs.takeList([run], mark),
        () => undefined, // not there (any more): it is simply not drawn
      );
    }
  }

  // A page opened without a choice shows what was started last, with the runs that still join it;
  // from then on only people choose, so that nobody's view jumps when a colleague submits.
  private adoptNewest(): void {
    if (!this.listed.value || address.value.view !== 'runs') return;
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
