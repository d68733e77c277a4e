import type { StreamStatus } from '../api/event_stream';
import { formatCount, formatTime, formatUtc } from '../format/format';
import type { Live } from '../state/live';
import { nextTheme, themeChoice } from '../state/theme';

export function TopBar({ live }: { live: Live | undefined }) {
  return (
    <header class="top">
      <b class="brand">normlab</b>
      <nav aria-label="Views">
        <a href="#/runs" aria-current="page">
          Runs
        </a>
      </nav>
      <span class="space" />
      {live ? <Connection live={live} /> : null}
      <button type="button" class="quiet" title="Light, dark or as the system" onClick={nextTheme}>
        theme: {themeChoice.value}
      </button>
      {live?.user.value ? <span title="logged in as">{live.user.value}</span> : null}
    </header>
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
