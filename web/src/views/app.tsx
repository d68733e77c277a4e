import { signal } from '@preact/signals';
import type { Live } from '../state/live';
import { LoginView } from './login_view';
import { RunsView } from './runs_view';
import { TopBar } from './top_bar';

/** What a logged-in page knows; undefined while nobody is logged in. */
export const live = signal<Live | undefined>(undefined);

// What people who look at runs should know about the server; stays while it is so.
function Notices({ live }: { live: Live }) {
  const problems = live.notices.value;
  if (problems.length === 0) return null;
  return (
    <ul class="notices" role="status">
      {problems.map((problem) => (
        <li key={problem}>{problem}</li>
      ))}
    </ul>
  );
}

export function App() {
  const now = live.value;
  return (
    <>
      <TopBar live={now} />
      {now ? <Notices live={now} /> : null}
      {now ? <RunsView live={now} /> : <LoginView />}
    </>
  );
}
