import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface Size {
  width: number;
  height: number;
}

/** The size of an element in CSS pixels, kept up to date; zeros before it is laid out. */
export function useSize<E extends HTMLElement>(): [RefObject<E | null>, Size] {
  const element = useRef<E>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const watched = element.current;
    if (!watched) return;
    const look = () => {
      const { clientWidth: width, clientHeight: height } = watched;
      setSize((before) =>
        before.width === width && before.height === height ? before : { width, height },
      );
    };
    const observer = new ResizeObserver(look);
    observer.observe(watched);
    look();
    return () => observer.disconnect();
  }, []);
  return [element, size];
}
