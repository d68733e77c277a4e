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
  const gone = goneText(live.dropped.value.size);
  const unread = selected.value.flatMap((id) => live.unread.value.get(id) ?? []);
  if (selected.value.length === 0) return <NothingChosen gone={gone} />;
  return (
    <main class="page compare-page">
      <header class="head">
        <h1>{formatCount(runs.length)} runs</h1>
        {runs.length > live.drawn.value.length ? (
          <span class="secondary">the first {formatCount(live.drawn.value.length)} are drawn</span>
        ) : null}
        {gone ? <span class="secondary">{gone}</span> : null}
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

function goneText(count: number): string {
  if (count === 0) return '';
  return `${formatCount(count)} ${count === 1 ? 'is' : 'are'} not there any more`;
}

function NothingChosen({ gone }: { gone: string }) {
  return (
    <main class="hint">
      <h1>Compare</h1>
      {gone ? <p role="alert">Of the runs that this address named, {gone}.</p> : null}
      <p>No runs are chosen.</p>
      <p>
        Tick runs in the <a href={addressOf('runs')}>list of runs</a> and choose “compare” there; or
        open an experiment, which compares its own.
      </p>
    </main>
  );
}
