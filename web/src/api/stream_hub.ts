// Shares one EventStream among the tabs of a browser: HTTP/1.1 allows six connections to a server,
// and eight tabs are not rare. It lives in a shared worker (stream_worker.ts), or in the page
// itself where there is none.

import {
  EventStream,
  type StreamListener,
  type StreamOptions,
  type StreamStatus,
} from './event_stream';
import { runOf, type StreamEvent } from './events';

export type ToHub =
  | { type: 'hello'; token: string }
  | { type: 'watch'; runs: string[] }
  | { type: 'here' }
  | { type: 'bye' };

export type FromHub =
  | { type: 'events'; events: StreamEvent[] }
  | { type: 'status'; status: StreamStatus }
  | { type: 'covered'; runs: string[] }
  | { type: 'reset' }
  /** The hub does not know this page (any more): say hello and watch again. */
  | { type: 'who' };

/** A page says `here` this often; a hidden page's timers may be slowed to once a minute. */
export const hereMilliseconds = 30_000;
const forgottenMilliseconds = 5 * hereMilliseconds;

interface Page {
  send(message: FromHub): void;
  runs: Set<string>;
  heard: number;
}

export interface Stream {
  watch(runs: string[]): void;
  retryNow(): void;
  stop(): void;
}
type MakeStream = (options: StreamOptions, listener: StreamListener) => Stream;

export class StreamHub implements StreamListener {
  private readonly pages = new Map<unknown, Page>();
  private stream: Stream | undefined;
  private token = '';
  private lastStatus: StreamStatus = { kind: 'connecting' };
  private lastNotice: StreamEvent | undefined;
  private readonly coveredRuns = new Set<string>();

  constructor(
    private readonly makeStream: MakeStream = (options, listener) =>
      new EventStream(options, listener),
    private readonly now: () => number = Date.now,
  ) {}

  receive(key: unknown, message: ToHub, send: (message: FromHub) => void): void {
    this.handle(key, message, send);
    this.forgetSilentPages();
  }

  private handle(key: unknown, message: ToHub, send: (message: FromHub) => void): void {
    const page = this.pages.get(key);
    if (message.type === 'hello') {
      this.pages.set(key, { send, runs: new Set(), heard: this.now() });
      this.useToken(message.token);
      send({ type: 'status', status: this.lastStatus });
      if (this.lastNotice) send({ type: 'events', events: [this.lastNotice] });
    } else if (!page) {
      if (message.type !== 'bye') send({ type: 'who' });
    } else if (message.type === 'bye') {
      this.pages.delete(key);
      this.rewatch();
    } else {
      page.heard = this.now();
      if (message.type === 'here') this.stream?.retryNow();
      else this.setRuns(page, message.runs);
    }
  }

  events(events: StreamEvent[]): void {
    for (const event of events) {
      if (event.kind === 'notice') this.lastNotice = event;
      if (event.kind === 'deleted') this.forgetRun(event.run);
    }
    for (const page of this.pages.values()) {
      const wanted = events.filter(
        (event) => event.kind !== 'points' || page.runs.has(runOf(event)),
      );
      if (wanted.length > 0) page.send({ type: 'events', events: wanted });
    }
  }

  status(status: StreamStatus): void {
    this.lastStatus = status;
    for (const page of this.pages.values()) page.send({ type: 'status', status });
  }

  covered(runs: string[]): void {
    for (const run of runs) this.coveredRuns.add(run);
    for (const page of this.pages.values()) {
      page.send({ type: 'covered', runs: runs.filter((run) => page.runs.has(run)) });
    }
  }

  reset(): void {
    this.coveredRuns.clear();
    for (const page of this.pages.values()) page.send({ type: 'reset' });
  }

  private useToken(token: string): void {
    if (this.stream && token === this.token && this.lastStatus.kind !== 'unauthorized') return;
    this.stream?.stop();
    this.token = token;
    this.coveredRuns.clear();
    this.lastNotice = undefined;
    this.lastStatus = { kind: 'connecting' };
    this.stream = this.makeStream({ token }, this);
    this.rewatch();
  }

  private setRuns(page: Page, runs: string[]): void {
    page.runs = new Set(runs);
    const already = runs.filter((run) => this.coveredRuns.has(run));
    this.rewatch();
    if (already.length > 0) page.send({ type: 'covered', runs: already });
  }

  // A page that is frozen goes on wanting it; the server would refuse the whole stream for that.
  private forgetRun(run: string): void {
    for (const page of this.pages.values()) page.runs.delete(run);
    this.rewatch();
  }

  private rewatch(): void {
    const union = new Set<string>();
    for (const page of this.pages.values()) for (const run of page.runs) union.add(run);
    // What is not watched from now on will have to be covered anew.
    for (const run of this.coveredRuns) if (!union.has(run)) this.coveredRuns.delete(run);
    if (this.pages.size === 0) {
      this.stream?.stop();
      this.stream = undefined;
      this.coveredRuns.clear();
    }
    this.stream?.watch([...union]);
  }

  // A tab that crashed says no goodbye.
  private forgetSilentPages(): void {
    const before = this.pages.size;
    for (const [key, page] of this.pages) {
      if (this.now() - page.heard > forgottenMilliseconds) this.pages.delete(key);
    }
    if (this.pages.size < before) this.rewatch();
  }
}
