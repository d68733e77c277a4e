import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { Live } from '../state/live';
import { address } from '../state/router';
import type { View } from '../state/url_state';
import { LoginView } from './login_view';
import { lazyView } from './shared/lazy_view';
import { Said } from './shared/said';
import { TopBar } from './top_bar';

/** What a logged-in page knows; undefined while nobody is logged in. */
export const live = signal<Live | undefined>(undefined);

// Each view is a file of its own, so that a first visit loads only what it shows.
const views: Record<View, ReturnType<typeof lazyView>> = {
  runs: lazyView(() => import('./runs/runs_view').then((file) => file.RunsView)),
  run: lazyView(() => import('./run/run_view').then((file) => file.RunView)),
  compare: lazyView(() => import('./compare/compare_view').then((file) => file.CompareView)),
  experiment: lazyView(() =>
    import('./experiment/experiment_view').then((file) => file.ExperimentView),
  ),
  queue: lazyView(() => import('./queue/queue_view').then((file) => file.QueueView)),
  submit: lazyView(() => import('./submit/submit_view').then((file) => file.SubmitView)),
};

const titles: Record<View, string> = {
  runs: 'Runs',
  run: 'Run',
  compare: 'Compare',
  experiment: 'Experiment',
  queue: 'Queue',
  submit: 'Submit',
};

// What people who look at runs should know about the server; stays while it is so.
function Notices({ live }: { live: Live }) {
  const problems = live.notices.value;
  if (problems.length === 0) return null;
  return (
    <div class="notices" role="status">
      <ul>
        {problems.map((problem) => (
          <li key={problem}>{problem}</li>
        ))}
      </ul>
    </div>
  );
}

const patienceMilliseconds = 2_000;

// Not at once: most breaks are over before anybody could do something.
function OfflineHint({ live }: { live: Live }) {
  const status = live.connection.value;
  const isOffline = status.kind === 'offline';
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    if (!isOffline) return;
    const timer = setTimeout(() => setLong(true), patienceMilliseconds);
    return () => {
      clearTimeout(timer);
      setLong(false);
    };
  }, [isOffline]);
  if (status.kind !== 'offline' || !isLong) return null;
  return (
    <div class="notices" role="status">
      The server at {location.host} does not answer. If it was stopped, start normlabd again; if it
      is on another machine, look after the network or the tunnel to it. Runs train on meanwhile,
      what is shown stays, and this page catches up by itself.
    </div>
  );
}

export function App() {
  const now = live.value;
  const { view } = address.value;
  useEffect(() => {
    document.title = `${titles[view]} · normlab`;
  }, [view]);
  const Shown = views[view];
  return (
    <>
      <TopBar live={now} />
      {now ? <Notices live={now} /> : null}
      {now ? <OfflineHint live={now} /> : null}
      {now ? <Shown live={now} /> : <LoginView />}
      <Said />
    </>
  );
}
