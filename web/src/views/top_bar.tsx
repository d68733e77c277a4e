import type { StreamStatus } from '../api/event_stream';
import { formatTime, formatUtc } from '../format/format';
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
      {live ? <Connection status={live.connection.value} /> : null}
      <button type="button" class="quiet" title="Light, dark or as the system" onClick={nextTheme}>
        theme: {themeChoice.value}
      </button>
      {live?.user.value ? <span title="logged in as">{live.user.value}</span> : null}
    </header>
  );
}

function Connection({ status }: { status: StreamStatus }) {
  const look = connectionLook(status);
  return (
    <span class={`connection ${look.colour}`} role="status" title={look.title}>
      <span aria-hidden="true">●</span> {look.text}
    </span>
  );
}

function connectionLook(status: StreamStatus): { colour: string; text: string; title: string } {
  switch (status.kind) {
    case 'live':
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
