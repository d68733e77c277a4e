// A page's end of the shared event stream.
import type { StreamListener } from './event_stream';
import { type FromHub, hereMilliseconds, StreamHub, type ToHub } from './stream_hub';

export class StreamClient {
  private readonly post: (message: ToHub) => void;
  private runs: string[] = [];
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly token: string,
    private readonly listener: StreamListener,
  ) {
    this.post = this.openHub();
    this.hello();
    this.timer = setInterval(() => this.post({ type: 'here' }), hereMilliseconds);
    addEventListener('pagehide', this.leave);
    addEventListener('pageshow', this.comeBack);
    addEventListener('online', this.here);
    document.addEventListener('visibilitychange', this.here);
  }

  /** The runs whose points this page wants. */
  watch(runs: string[]): void {
    this.runs = runs;
    this.post({ type: 'watch', runs });
  }

  close(): void {
    clearInterval(this.timer);
    removeEventListener('pagehide', this.leave);
    removeEventListener('pageshow', this.comeBack);
    removeEventListener('online', this.here);
    document.removeEventListener('visibilitychange', this.here);
    this.leave();
  }

  private openHub(): (message: ToHub) => void {
    if (typeof SharedWorker !== 'undefined') {
      try {
        const worker = new SharedWorker(new URL('./stream_worker.ts', import.meta.url), {
          type: 'module',
          name: 'normlab event stream',
        });
        worker.port.onmessage = ({ data }: MessageEvent<FromHub>) => this.receive(data);
        return (message) => worker.port.postMessage(message);
      } catch {
        // Some private windows refuse workers; a stream of the page's own does as well.
      }
    }
    const hub = new StreamHub();
    return (message) => hub.receive(this, message, (answer) => this.receive(answer));
  }

  private receive(message: FromHub): void {
    if (message.type === 'events') this.listener.events(message.events);
    else if (message.type === 'status') this.listener.status(message.status);
    else if (message.type === 'covered') this.listener.covered(message.runs);
    else {
      this.listener.reset();
      if (message.type === 'who') this.hello();
    }
  }

  private hello(): void {
    this.post({ type: 'hello', token: this.token });
    this.post({ type: 'watch', runs: this.runs });
  }

  private readonly here = (): void => {
    if (document.visibilityState === 'visible') this.post({ type: 'here' });
  };
  private readonly leave = (): void => this.post({ type: 'bye' });
  // A page out of the back/forward cache missed what happened meanwhile.
  private readonly comeBack = (event: PageTransitionEvent): void => {
    if (!event.persisted) return;
    this.listener.reset();
    this.hello();
  };
}
