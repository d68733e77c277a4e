// Something that does not change while a server runs, such as its settings: read when it is first
// needed, and until then tried again and again.
import { signal } from '@preact/signals';

const retryMilliseconds = 3_000;

export class ReadOnce<T> {
  /** What was there before it was read, and then that. */
  readonly value;
  /** Why it could not be read, in words; '' when it could, or was not needed yet. */
  readonly problem = signal('');
  private isAsked = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    nothing: T,
    private readonly read: () => Promise<T>,
  ) {
    this.value = signal(nothing);
  }

  need(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    this.read().then(
      (value) => {
        this.value.value = value;
        this.problem.value = '';
      },
      (error: unknown) => {
        this.problem.value = error instanceof Error ? error.message : String(error);
        this.timer = setTimeout(() => {
          this.isAsked = false;
          this.need();
        }, retryMilliseconds);
      },
    );
  }

  stop(): void {
    this.isAsked = true;
    clearTimeout(this.timer);
  }
}
