import { signal } from '@preact/signals';
import type { Live } from '../state/live';
import { LoginView } from './login_view';
import { RunsView } from './runs_view';
import { TopBar } from './top_bar';

/** What a logged-in page knows; undefined while nobody is logged in. */
export const live = signal<Live | undefined>(undefined);

export function App() {
  const now = live.value;
  return (
    <>
      <TopBar live={now} />
      {now ? <RunsView live={now} /> : <LoginView />}
    </>
  );
}
