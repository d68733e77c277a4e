// A button for what cannot be taken back: asks once, in its own place.
//
//   <ConfirmButton label="cancel" question="cancel 3 runs?" act={() => cancel(runs)} />
import { useEffect, useRef, useState } from 'preact/hooks';

interface Props {
  label: string;
  /** Asked after the first click, such as "cancel 3 runs?". */
  question: string;
  act: () => void;
  disabled?: boolean;
  title?: string;
}

export function ConfirmButton({ label, question, act, disabled = false, title }: Props) {
  const [asked, setAsked] = useState(false);
  const first = useRef<HTMLButtonElement>(null);
  const yes = useRef<HTMLButtonElement>(null);
  const wasAsked = useRef(false);
  // The keyboard stays where it was: on the answer, and then on the button again.
  useEffect(() => {
    if (asked) yes.current?.focus();
    else if (wasAsked.current) first.current?.focus();
    wasAsked.current = asked;
  }, [asked]);

  if (!asked) {
    return (
      <button
        ref={first}
        type="button"
        disabled={disabled}
        {...(title ? { title } : {})}
        onClick={() => setAsked(true)}
      >
        {label}
      </button>
    );
  }
  const answer = (agreed: boolean) => {
    setAsked(false);
    if (agreed) act();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    answer(false);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape of the buttons inside
    <span class="confirm" onKeyDown={onKeyDown}>
      {question}{' '}
      <button ref={yes} type="button" class="danger" onClick={() => answer(true)}>
        yes, {label}
      </button>{' '}
      <button type="button" onClick={() => answer(false)}>
        no
      </button>
    </span>
  );
}
