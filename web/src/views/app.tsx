import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
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
      {now ? <Shown live={now} /> : <LoginView />}
      <Said />
    </>
  );
}
