import type { StreamStatus } from '../api/event_stream';
import { formatCount, formatTime, formatUtc } from '../format/format';
import type { Live } from '../state/live';
import { address, returnTo } from '../state/router';
import { selected } from '../state/selection';
import { nextTheme, themeChoice } from '../state/theme';
import { addressOf, type View } from '../state/url_state';
import { SearchBox } from './search_box';

export function TopBar({ live }: { live: Live | undefined }) {
  return (
    <header class="top">
      <b class="brand">normlab</b>
      {live ? <Views /> : null}
      {live ? <SearchBox /> : null}
      <span class="space" />
      {live ? <Connection live={live} /> : null}
      <button type="button" class="quiet" title="Light, dark or as the system" onClick={nextTheme}>
        <span class="wide">theme: </span>
        {themeChoice.value}
      </button>
      {live?.user.value ? (
        <span class="user" title={`logged in, as ${live.role.value || 'user'}`}>
          {live.user.value}
        </span>
      ) : null}
    </header>
  );
}

function Views() {
  const { view } = address.value;
  // Comparing starts from what is selected among the runs, unless it was compared before.
  const chosen = view === 'runs' ? selected.value : [];
  const compare =
    chosen.length > 1 ? addressOf('compare', '', { runs: chosen.join() }) : returnTo('compare');
  return (
    <nav aria-label="Views">
      <Tab name="Runs" href={returnTo('runs')} here={['runs', 'run', 'experiment']} />
      <Tab name="Compare" href={compare} here={['compare']} />
      <Tab name="Queue" href={returnTo('queue')} here={['queue']} />
      <Tab name="Submit" href={returnTo('submit')} here={['submit']} />
    </nav>
  );
}

function Tab({ name, href, here }: { name: string; href: string; here: View[] }) {
  const isHere = here.includes(address.value.view);
  return (
    <a href={href} {...(isHere ? { 'aria-current': 'page' } : {})}>
      {name}
    </a>
  );
}

function Connection({ live }: { live: Live }) {
  const look = connectionLook(live.connection.value, live.behind.value);
  return (
    <span class={`connection ${look.colour}`} role="status" title={look.title}>
      <span aria-hidden="true">●</span> {look.text}
    </span>
  );
}

interface ConnectionLook {
  colour: string;
  text: string;
  title: string;
}

function connectionLook(status: StreamStatus, behind: number): ConnectionLook {
  switch (status.kind) {
    case 'live':
      if (behind > 0) {
        const points = behind === 1 ? 'point' : 'points';
        return {
          colour: 'behind',
          text: `${formatCount(behind)} ${points} behind`,
          title: 'The server has more than is drawn; it is on its way',
        };
      }
      return { colour: 'live', text: 'live', title: 'Every change is shown as it happens' };
    case 'connecting':
      return { colour: 'behind', text: 'connecting', title: 'Waiting for the server' };
    case 'unauthorized':
      return { colour: 'offline', text: 'not logged in', title: '' };
    case 'offline': {
      const since = new Date(status.since);
      return {
        colour: 'offline',
        text: `offline since ${formatTime(since)}, retrying`,
        title: `${formatUtc(since)}: ${status.reason}`,
      };
    }
  }
}
