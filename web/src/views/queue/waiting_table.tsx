// The runs that wait, in the order in which they are expected to start.
import type { Signal } from '@preact/signals';
import { formatTime, formatUtc } from '../../format/format';
import type { QueueEntryJson } from '../../gen/normlab/v1/device_service_pb';
import type { Live } from '../../state/live';
import type { QueueStore } from '../../state/queue_store';
import { asksText, movesOf, reasonText, startText } from '../../state/queue_text';
import { mayChange } from '../../state/run_actions';
import { addressOf } from '../../state/url_state';
import { ConfirmButton } from '../shared/confirm_button';
import { Menu } from '../shared/menu';
import { say, sayProblem } from '../shared/said';

interface Props {
  live: Live;
  store: QueueStore;
  clock: Signal<number>;
}

export function WaitingTable({ live, store, clock }: Props) {
  const entries = store.queue.value?.entries ?? [];
  return (
    <div class="wide-table">
      <table class="waiting">
        <thead>
          <tr>
            <th scope="col" class="number place" title="place in the queue">
              place
            </th>
            <th scope="col" class="run-name">
              run
            </th>
            <th scope="col" class="who">
              who
            </th>
            <th scope="col" class="class">
              class
            </th>
            <th scope="col" class="asks">
              asks for
            </th>
            <th scope="col">waits for</th>
            <th scope="col" class="start" title="expected, from the speed of runs so far">
              starts
            </th>
            <th scope="col" class="entry-actions">
              <span class="hidden">change</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <Entry key={entry.run} live={live} store={store} clock={clock} entry={entry} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Entry({ live, store, clock, entry }: Props & { entry: QueueEntryJson }) {
  const position = Number(entry.position ?? 0);
  const reason = reasonText(entry);
  const isMine = mayChange({ user: entry.user ?? '' }, live.user.value, live.role.value);
  return (
    <tr data-run={entry.run}>
      <td class="number place">{position > 0 ? position : '–'}</td>
      <th scope="row" class="run-name" title={`${entry.displayName}\n${entry.run}`}>
        <a href={addressOf('run', entry.run)}>{entry.displayName}</a>
      </th>
      <td class="who secondary">{entry.user}</td>
      <td class="class secondary">{entry.priority}</td>
      <td class="asks secondary" title={asksText(entry)}>
        {asksText(entry)}
      </td>
      <td class="reason" title={entry.waitReason}>
        {reason}
      </td>
      <td class="start">
        <Start entry={entry} clock={clock} />
      </td>
      <td class="entry-actions">
        {isMine ? <EntryActions live={live} store={store} entry={entry} /> : null}
      </td>
    </tr>
  );
}

// Apart from the row, because it changes every second.
function Start({ entry, clock }: { entry: QueueEntryJson; clock: Signal<number> }) {
  if (!entry.estimatedStartTime) return <span class="secondary">–</span>;
  const time = new Date(entry.estimatedStartTime);
  return (
    <time
      dateTime={entry.estimatedStartTime}
      title={`about ${formatTime(time)}\n${formatUtc(time)}`}
    >
      {startText(entry, clock.value)}
    </time>
  );
}

function EntryActions({ live, store, entry }: Omit<Props, 'clock'> & { entry: QueueEntryJson }) {
  const id = entry.run ?? '';
  const ask = (what: string, done: string, method: string, path: string, body: unknown) => {
    live.client.call(method, path, body).then(
      () => {
        say(`${entry.displayName} ${done}`);
        store.changed();
      },
      (error: unknown) => sayProblem(what, error),
    );
  };
  const moves = movesOf(entry, store.queue.value?.entries ?? []);
  const classes = live.role.value === 'admin' ? ['high', 'normal', 'low'] : ['normal', 'low'];
  return (
    <Menu label="⋯" title={`change the place of ${entry.displayName}`}>
      {(close) => (
        <div class="more-actions">
          {moves.map(({ name, place }) => (
            <button
              key={name}
              type="button"
              onClick={() => {
                close();
                ask('move', `moved ${name}`, 'POST', `/runs/${id}:move`, place);
              }}
            >
              move {name}
            </button>
          ))}
          <button
            type="button"
            onClick={() => {
              close();
              const verb = entry.held ? 'release' : 'hold';
              ask(verb, entry.held ? 'released' : 'held', 'POST', `/runs/${id}:${verb}`, {});
            }}
          >
            {entry.held ? 'release' : 'hold'}
          </button>
          <label>
            class{' '}
            <select
              value={entry.priority}
              onChange={(event) => {
                const priority = event.currentTarget.value;
                close();
                ask('class', `is ${priority} now`, 'PATCH', `/runs/${id}`, { priority });
              }}
            >
              {[...new Set([...classes, entry.priority])].map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <ConfirmButton
            label="cancel"
            question="cancel this run?"
            act={() => {
              close();
              ask('cancel', 'cancelled', 'POST', `/runs/${id}:cancel`, {});
            }}
          />
        </div>
      )}
    </Menu>
  );
}
