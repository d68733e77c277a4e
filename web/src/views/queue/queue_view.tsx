// Who runs what where, who waits for what, and whose turn is next.
import './queue.css';
import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { formatCount } from '../../format/format';
import type { Live } from '../../state/live';
import { QueueStore } from '../../state/queue_store';
import { CopyLink } from '../shared/copy_link';
import { DeviceTable } from './device_table';
import { Standing } from './standing';
import { WaitingTable } from './waiting_table';

export function QueueView({ live }: { live: Live }) {
  const store = useMemo(
    () => new QueueStore(live.client, () => document.visibilityState === 'visible'),
    [live],
  );
  useEffect(() => () => store.stop(), [store]);
  const clock = useClock();
  const changes = live.stateChanges.value;
  const connection = live.connection.value.kind;
  useEffect(() => store.changed(), [store, changes, connection]);

  const queue = store.queue.value;
  const total = Number(queue?.totalSize ?? 0);
  const shown = queue?.entries?.length ?? 0;
  return (
    <main class="queue" aria-busy={!queue}>
      <h1 class="hidden">Queue and devices</h1>
      {store.problem.value ? (
        <p class="problem" role="alert">
          The queue could not be read: {store.problem.value}; trying again.
        </p>
      ) : null}
      <section aria-labelledby="devices-title">
        <div class="title-line">
          <h2 id="devices-title">Devices</h2>
          <CopyLink />
        </div>
        <DeviceTable live={live} store={store} />
      </section>
      <section aria-labelledby="waiting-title">
        <h2 id="waiting-title">
          Waiting <span class="secondary">{queue ? formatCount(total) : ''}</span>
        </h2>
        {queue && shown === 0 ? (
          <p class="hint">Nothing waits. What is submitted starts as soon as a device is free.</p>
        ) : (
          <WaitingTable live={live} store={store} clock={clock} />
        )}
        {shown < total ? (
          <p class="secondary">
            {formatCount(shown)} of {formatCount(total)}{' '}
            <button type="button" onClick={() => store.showMore()}>
              show more
            </button>
          </p>
        ) : null}
      </section>
      <section aria-labelledby="standing-title">
        <h2 id="standing-title">Whose turn is next</h2>
        <Standing users={queue?.users ?? []} />
      </section>
    </main>
  );
}

const clockMilliseconds = 1000;

/** The time, now and then: estimated starts come nearer by themselves. */
function useClock(): Signal<number> {
  const clock = useMemo(() => signal(Date.now()), []);
  useEffect(() => {
    const timer = setInterval(() => {
      clock.value = Date.now();
    }, clockMilliseconds);
    return () => clearInterval(timer);
  }, [clock]);
  return clock;
}
