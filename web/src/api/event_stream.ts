// One reading of GET /api/v1/events that outlives connections: it resumes after the last event it
// has seen, so whoever listens gets every event of the watched runs once and in order.
//
// The first connection asks for the states of all runs only, which gives a place in the stream to
// resume from; every later one resumes and names the runs whose points are wanted. So the server
// never sends a history here. Points of before are read by whoever wants them (GET …/series) after
// `covered` has named the run: from then on nothing of it is missed, and both together are the
// whole curve, also when runs are added later.
import { decodeEvent, type StreamEvent } from './events';
import { type SseMessage, SseParser } from './sse';

export type StreamStatus =
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** Since when (ms since 1970), and why, in words. */
  | { kind: 'offline'; since: number; reason: string }
  | { kind: 'unauthorized' };

export interface StreamListener {
  events(events: StreamEvent[]): void;
  status(status: StreamStatus): void;
  /** No later event of these runs will be missed. */
  covered(runs: string[]): void;
  /** Events may have been missed: read everything again. A `covered` follows. */
  reset(): void;
}

export interface StreamOptions {
  token: string;
  /** For tests. */
  fetch?: typeof fetch;
  now?: () => number;
  backoffMilliseconds?: number;
}

// The server sends a heartbeat every 15 s; two missing ones and a little mean a dead connection.
const silenceMilliseconds = 40_000;
const longestBackoffMilliseconds = 3_000;

export class EventStream {
  private readonly fetch: typeof fetch;
  private readonly now: () => number;
  private runs: string[] = [];
  private resumeToken: string | undefined;
  /** Somebody was told `covered`, and events may have been missed since. */
  private missed = false;
  private connection: AbortController | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;
  private heardAt = 0;
  /** Nothing has come by this connection yet. */
  private isNew = false;
  private toldOfProblems = false;
  private failures = 0;
  private offlineSince: number | undefined;
  private stopped = false;

  constructor(
    private readonly options: StreamOptions,
    private readonly listener: StreamListener,
  ) {
    this.fetch = options.fetch ?? fetch.bind(globalThis);
    this.now = options.now ?? Date.now;
  }

  /** Watches the points of exactly these runs, and connects if need be. */
  watch(runs: string[]): void {
    const wanted = [...new Set(runs)].sort();
    if (this.connection && wanted.join() === this.runs.join()) return;
    this.runs = wanted;
    if (this.resumeToken === undefined) {
      if (!this.connection) this.connect();
      return; // the runs are named once there is a place to resume from
    }
    // Whatever happens after the resume token will be sent, also for runs named only now.
    if (!this.missed) this.listener.covered(wanted);
    this.connect();
  }

  /**
   * Tries at once instead of at the end of a pause: somebody came back to the page. A connection
   * that was silent for too long is given up as well: timers stand still while a machine sleeps,
   * so after waking up that would be noticed late.
   */
  retryNow(): void {
    const connection = this.connection;
    if (connection && this.now() - this.heardAt > silenceMilliseconds) {
      this.lost(connection, 'nothing was heard from the server for a while');
    }
    if (this.retryTimer !== undefined) this.connect();
  }

  stop(): void {
    this.stopped = true;
    this.disconnect();
  }

  private disconnect(): void {
    clearTimeout(this.retryTimer);
    clearTimeout(this.silenceTimer);
    this.retryTimer = undefined;
    this.connection?.abort();
    this.connection = undefined;
  }

  private connect(): void {
    this.disconnect();
    if (this.stopped) return;
    const connection = new AbortController();
    this.connection = connection;
    this.read(connection).then(
      () => this.lost(connection, 'the server ended the stream'),
      (error: unknown) =>
        this.lost(connection, error instanceof Error ? error.message : `${error}`),
    );
  }

  private async read(connection: AbortController): Promise<void> {
    const query = new URLSearchParams({ all: 'true' });
    if (this.resumeToken !== undefined) {
      query.set('resume', this.resumeToken);
      if (this.runs.length > 0) query.set('runs', this.runs.join());
    }
    this.listenForSilence(connection);
    const response = await this.fetch(`/api/v1/events?${query}`, {
      headers: { Authorization: `Bearer ${this.options.token}`, Accept: 'text/event-stream' },
      cache: 'no-store',
      signal: connection.signal,
    });
    if (connection.signal.aborted) return;
    if (!response.ok || !response.body) return this.refused(response, connection);
    this.accepted();

    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (connection.signal.aborted || done) return;
      this.listenForSilence(connection);
      this.failures = 0;
      this.take(parser.push(value));
      if (connection.signal.aborted) return;
    }
  }

  private accepted(): void {
    this.isNew = true;
    this.offlineSince = undefined;
    if (this.resumeToken !== undefined && this.missed) {
      this.missed = false;
      this.listener.covered(this.runs);
    }
    this.listener.status({ kind: 'live' });
  }

  private take(messages: SseMessage[]): void {
    const hadPlace = this.resumeToken !== undefined;
    const events: StreamEvent[] = this.staleNotice(messages);
    const error = messages.find((message) => message.event === 'error');
    for (const message of messages) {
      if (message === error) break;
      if (message.id) this.resumeToken = message.id;
      const event = decodeEvent(message);
      if (event?.kind === 'notice') this.toldOfProblems = event.problems.length > 0;
      if (event) events.push(event);
    }
    if (events.length > 0) this.listener.events(events);
    if (error) throw this.problem(JSON.parse(error.data)); // what came before it has been taken
    if (hadPlace || this.resumeToken === undefined) return;
    this.missed = false;
    this.listener.covered(this.runs);
    if (this.runs.length > 0) this.connect();
  }

  // What is wrong comes first of all. So if something else does, what was wrong before the
  // connection was lost is no more.
  private staleNotice(messages: SseMessage[]): StreamEvent[] {
    const [first] = messages;
    if (!this.isNew || !first) return [];
    this.isNew = false;
    if (!this.toldOfProblems || first.event === 'notice') return [];
    this.toldOfProblems = false;
    return [{ kind: 'notice', problems: [] }];
  }

  private async refused(response: Response, connection: AbortController): Promise<void> {
    const body = await response.json().catch(() => undefined);
    if (connection.signal.aborted) return;
    if (response.status === 401) {
      this.stop();
      this.listener.status({ kind: 'unauthorized' });
      return;
    }
    throw this.problem(body, response.status);
  }

  private problem(body: { error?: { status?: string; message?: string } }, code = 0): Error {
    const status = body?.error?.status;
    // The store behind the server is another one (restored, or made anew), or a watched run is
    // gone: whoever listens has to look again.
    if (status === 'OUT_OF_RANGE') this.resumeToken = undefined;
    if (status === 'OUT_OF_RANGE' || status === 'NOT_FOUND') {
      this.missed = true;
      this.listener.reset();
    }
    return new Error(body?.error?.message ?? `the server answered ${code}`);
  }

  private listenForSilence(connection: AbortController): void {
    this.heardAt = this.now();
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(
      () => this.lost(connection, 'the server has been silent for 40 s'),
      silenceMilliseconds,
    );
  }

  private lost(connection: AbortController, reason: string): void {
    if (connection !== this.connection || this.stopped) return;
    this.disconnect();
    this.offlineSince ??= this.now();
    const pause = Math.min(
      (this.options.backoffMilliseconds ?? 250) * 2 ** this.failures,
      longestBackoffMilliseconds,
    );
    this.failures++;
    this.listener.status({ kind: 'offline', since: this.offlineSince, reason });
    // Spread over half the pause, so that a hundred pages do not return in the same millisecond.
    this.retryTimer = setTimeout(() => this.connect(), pause * (0.75 + 0.5 * Math.random()));
  }
}
