// One run: its curves, what happens in its blocks, and everything that is known about it.
import { formatCount } from '../../format/format';
import type { Live } from '../../state/live';
import { address } from '../../state/router';
import { addressOf } from '../../state/url_state';
import { LogTail } from './log_tail';
import './run.css';
import { RunCharts } from './run_charts';
import { Attempts, Facts, Settings } from './run_facts';
import { RunHead } from './run_head';

export function RunView({ live }: { live: Live }) {
  const { id } = address.value;
  const run = live.runs.get(id);
  if (!run) return <NotHere live={live} id={id} />;
  return (
    <main class="page run-page" key={id}>
      <RunHead live={live} run={run} />
      <RunCharts live={live} id={id} />
      <section class="folds">
        <Facts live={live} run={run} />
        <Fold name="settings">
          <Settings live={live} run={run} />
        </Fold>
        <Fold name={`attempts (${formatCount(run.attempts?.length ?? 0)})`}>
          <Attempts run={run} />
        </Fold>
        <Fold name="log">
          <LogTail live={live} run={run} />
        </Fold>
      </section>
    </main>
  );
}

function Fold({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <section class="fold">
      <h2>{name}</h2>
      {children}
    </section>
  );
}

function NotHere({ live, id }: { live: Live; id: string }) {
  const isAbsent = live.absent.value.has(id);
  const problem = live.unread.value.get(id) ?? '';
  return (
    <main class="hint">
      {isAbsent ? (
        <>
          <p role="alert">There is no run {id}. It may have been deleted.</p>
          <p>
            <a href={addressOf('runs')}>All runs</a>
          </p>
        </>
      ) : problem ? (
        <p role="alert">The run could not be read: {problem}; trying again.</p>
      ) : (
        <p>reading the run…</p>
      )}
    </main>
  );
}
