// A view whose code is loaded when it is first shown.
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Live } from '../../state/live';

export type ViewComponent = ComponentType<{ live: Live }>;

export function lazyView(load: () => Promise<ViewComponent>): ViewComponent {
  const loaded = signal<ViewComponent | undefined>(undefined);
  const problem = signal('');
  const start = () => {
    problem.value = '';
    load().then(
      (component) => {
        loaded.value = component;
      },
      (error: unknown) => {
        problem.value = error instanceof Error ? error.message : String(error);
      },
    );
  };
  return function LazyView({ live }) {
    useEffect(() => {
      if (!loaded.peek()) start();
    }, []);
    const Shown = loaded.value;
    if (Shown) return <Shown live={live} />;
    return problem.value ? <NotLoaded problem={problem.value} retry={start} /> : <main />;
  };
}

// A page older than its server asks for files that the server does not have any more.
function NotLoaded({ problem, retry }: { problem: string; retry: () => void }) {
  return (
    <main class="hint">
      <p role="alert">This part of the page could not be loaded: {problem}</p>
      <p>
        If the server is away, try again when it is back. If it was updated, the page has to be
        loaded anew; its address says all that it shows.
      </p>
      <button type="button" onClick={retry}>
        try again
      </button>{' '}
      <button type="button" onClick={() => location.reload()}>
        load the page anew
      </button>
    </main>
  );
}
