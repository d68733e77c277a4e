// One line at the foot of the page about what was just done or could not be; goes by itself, but
// what went wrong stays until it is closed or something else is said.
import { signal } from '@preact/signals';

interface Message {
  text: string;
  isProblem: boolean;
}

const shownMilliseconds = 4_000;
const message = signal<Message | undefined>(undefined);
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  show({ text, isProblem: false });
  timer = setTimeout(hush, shownMilliseconds);
}

/** `what` could not be done: "cancel" and why. */
export function sayProblem(what: string, error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  show({ text: `${what}: ${why}`, isProblem: true });
}

function show(next: Message): void {
  clearTimeout(timer);
  message.value = next;
}

function hush(): void {
  message.value = undefined;
}

export function Said() {
  const now = message.value;
  return (
    <div class={`said${now?.isProblem ? ' problem' : ''}`} role="status" hidden={!now}>
      {now?.text}{' '}
      {now ? (
        <button type="button" onClick={hush} aria-label="close this message">
          ✕
        </button>
      ) : null}
    </div>
  );
}
