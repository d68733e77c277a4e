// Runs beside each other, as the address names them: #/compare?runs=ID,ID
import { formatCount } from '../../format/format';
import type { Live } from '../../state/live';
import { selected } from '../../state/selection';
import { addressOf } from '../../state/url_state';
import { CopyLink } from '../shared/copy_link';
import '../run/run.css';
import { Comparison } from './comparison';

export function CompareView({ live }: { live: Live }) {
  const runs = selected.value.flatMap((id) => live.runs.get(id) ?? []);
  const gone = selected.value.filter((id) => live.absent.value.has(id));
  const unread = selected.value.flatMap((id) => live.unread.value.get(id) ?? []);
  if (selected.value.length === 0) return <NothingChosen />;
  return (
    <main class="page compare-page">
      <header class="head">
        <h1>{formatCount(runs.length)} runs</h1>
        {runs.length > live.drawn.value.length ? (
          <span class="secondary">the first {formatCount(live.drawn.value.length)} are drawn</span>
        ) : null}
        {gone.length > 0 ? (
          <span class="secondary">
            {formatCount(gone.length)} {gone.length === 1 ? 'is' : 'are'} not there any more
          </span>
        ) : null}
        {unread.length > 0 ? (
          <span class="problem" role="alert">
            {formatCount(unread.length)} could not be read: {unread[0]}; trying again
          </span>
        ) : null}
        <span class="space" />
        <CopyLink />
      </header>
      <Comparison live={live} runs={runs} />
    </main>
  );
}

function NothingChosen() {
  return (
    <main class="hint">
      <h1>Compare</h1>
      <p>No runs are chosen.</p>
      <p>
        Tick runs in the <a href={addressOf('runs')}>list of runs</a> and choose “compare” there; or
        open an experiment, which compares its own.
      </p>
    </main>
  );
}
