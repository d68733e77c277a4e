// A button with a panel below it, which closes by Escape, by a click elsewhere, and by choosing.
//
//   <Menu label="⋯" title="more">{(close) => <button type="button" onClick={close}>…</button>}</Menu>
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface Props {
  /** Words, or a sign such as ⋯. */
  label: string;
  title: string;
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, title, children }: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open) return;
    const elsewhere = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener('pointerdown', elsewhere);
    return () => removeEventListener('pointerdown', elsewhere);
  }, [open]);

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !open) return;
    event.stopPropagation();
    close();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape of the controls inside
    <span class="menu" ref={box} onKeyDown={onKeyDown}>
      <button
        ref={button}
        type="button"
        aria-expanded={open}
        aria-label={`${label} ${title}`}
        title={title}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open ? <div class="panel">{children(close)}</div> : null}
    </span>
  );
}
