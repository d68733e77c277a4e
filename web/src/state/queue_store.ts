// The queue and the devices, as last read; read again when the event stream says that a run changed,
// once for all changes of a moment, and never twice at a time.
//
// Only what no event tells is read by the clock: how much memory and time of a GPU is in use, by
// whomever. That is every five seconds, while there is a GPU and somebody looks.
import { batch, signal } from '@preact/signals';
import type { DeviceJson, QueueJson } from '../gen/normlab/v1/device_service_pb';

export interface QueueSource {
  getQueue(size: number): Promise<QueueJson>;
  listDevices(): Promise<DeviceJson[]>;
}

const changeMilliseconds = 400;
const gpuMilliseconds = 5_000;
const retryMilliseconds = 3_000;

export class QueueStore {
  readonly queue = signal<QueueJson | undefined>(undefined);
  readonly devices = signal<readonly DeviceJson[]>([]);
  /** Why they could not be read, in words; '' when they could. What was read before stays. */
  readonly problem = signal('');

  private timer: ReturnType<typeof setTimeout> | undefined;
  private timerAt = Number.POSITIVE_INFINITY;
  private isReading = false;
  private isChanged = false;
  private isStopped = false;
  private size = 200;

  constructor(
    private readonly source: QueueSource,
    /** Somebody looks at the page. */
    private readonly isSeen: () => boolean = () => true,
    private readonly now: () => number = Date.now,
  ) {
    this.read();
  }

  /** Something changed; it is read in a moment. */
  changed(): void {
    if (this.isReading) this.isChanged = true;
    else this.after(changeMilliseconds, () => this.read());
  }

  /** Reads more of the runs that wait. */
  showMore(): void {
    this.size = Math.min(10_000, 4 * this.size);
    this.changed();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Whatever comes first of what was asked for. */
  private after(milliseconds: number, work: () => void): void {
    const at = this.now() + milliseconds;
    if (this.isStopped || at >= this.timerAt) return;
    clearTimeout(this.timer);
    this.timerAt = at;
    this.timer = setTimeout(() => {
      this.timerAt = Number.POSITIVE_INFINITY;
      work();
    }, milliseconds);
  }

  private read(): void {
    this.isReading = true;
    this.isChanged = false;
    Promise.all([this.source.getQueue(this.size), this.source.listDevices()]).then(
      ([queue, devices]) => {
        batch(() => {
          this.queue.value = queue;
          this.devices.value = devices;
          this.problem.value = '';
        });
        this.next(changeMilliseconds);
      },
      (error: unknown) => {
        this.problem.value = error instanceof Error ? error.message : String(error);
        this.isChanged = true;
        this.next(retryMilliseconds);
      },
    );
  }

  private next(milliseconds: number): void {
    this.isReading = false;
    if (this.isChanged) this.after(milliseconds, () => this.read());
    else if (this.devices.peek().some((device) => device.kind === 'KIND_GPU')) this.watchGpus();
  }

  private watchGpus(): void {
    this.after(gpuMilliseconds, () => (this.isSeen() ? this.read() : this.watchGpus()));
  }
}
