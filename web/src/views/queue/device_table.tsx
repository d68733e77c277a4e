// Where runs can train: what is in use there, by which runs, and why a device takes none.
import { useRef } from 'preact/hooks';
import { formatBytes } from '../../format/format';
import { progressText } from '../../format/run_text';
import type { DeviceJson, LeaseJson } from '../../gen/normlab/v1/device_service_pb';
import type { Live } from '../../state/live';
import type { QueueStore } from '../../state/queue_store';
import { memoryOf } from '../../state/queue_text';
import { addressOf } from '../../state/url_state';
import { Menu } from '../shared/menu';
import { say, sayProblem } from '../shared/said';
import { StateLabel } from '../shared/state_label';

interface Props {
  live: Live;
  store: QueueStore;
}

export function DeviceTable({ live, store }: Props) {
  const devices = store.devices.value;
  const hasGpus = devices.some((device) => device.kind === 'KIND_GPU');
  const isAdmin = live.role.value === 'admin';
  return (
    <div class="wide-table">
      <table class="devices">
        <thead>
          <tr>
            <th scope="col" class="device-id">
              device
            </th>
            <th scope="col" class="device-name">
              what it is
            </th>
            {hasGpus ? (
              <>
                <th scope="col" class="memory" title="in use, by whomever">
                  memory
                </th>
                <th scope="col" class="number use" title="part of the time that it computes">
                  use
                </th>
              </>
            ) : null}
            <th scope="col">runs there</th>
            {isAdmin ? (
              <th scope="col" class="device-actions">
                <span class="hidden">drain or put back</span>
              </th>
            ) : null}
          </tr>
        </thead>
        <tbody>
          {devices.map((device) => (
            <tr key={device.id} class={device.unavailableReason ? 'unavailable' : ''}>
              <th scope="row">
                <code>{device.id}</code>
              </th>
              <td class="device-name secondary" title={device.uuid}>
                {nameOf(device)}
              </td>
              {hasGpus ? <GpuUse device={device} /> : null}
              <td class="holders">
                <Holders live={live} device={device} />
              </td>
              {isAdmin ? (
                <td class="device-actions">
                  <DrainButton live={live} store={store} device={device} />
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function nameOf(device: DeviceJson): string {
  const threads = device.threads ?? 0;
  return threads > 1 ? `${device.name}, ${threads} threads` : (device.name ?? '');
}

function GpuUse({ device }: { device: DeviceJson }) {
  const memory = memoryOf(device);
  const use = device.utilization;
  const percent = (bytes: number) => `${(100 * bytes) / (memory?.total ?? 1)}%`;
  return (
    <>
      <td class="memory" title={memory?.text}>
        {memory ? (
          <>
            <span class="bar" aria-hidden="true">
              <span class="own" style={{ width: percent(memory.own) }} />
              <span class="foreign" style={{ width: percent(memory.foreign) }} />
            </span>{' '}
            {formatBytes(memory.own + memory.foreign)} of {formatBytes(memory.total)}
          </>
        ) : null}
      </td>
      <td class="number use">{typeof use === 'number' ? `${Math.round(100 * use)} %` : null}</td>
    </>
  );
}

function Holders({ live, device }: { live: Live; device: DeviceJson }) {
  const leases = device.leases ?? [];
  return (
    <>
      {device.unavailableReason ? (
        <span class="reason">takes no runs: {device.unavailableReason}</span>
      ) : null}
      {leases.length === 0 && !device.unavailableReason ? (
        <span class="secondary">free</span>
      ) : null}
      {leases.map((lease) => (
        <Holder key={lease.run} live={live} lease={lease} />
      ))}
    </>
  );
}

function Holder({ live, lease }: { live: Live; lease: LeaseJson }) {
  const id = lease.run ?? '';
  const run = live.runs.get(id);
  const facts = [
    lease.user ?? '',
    Number(lease.memoryBytes ?? 0) > 0 ? `at most ${formatBytes(Number(lease.memoryBytes))}` : '',
    lease.exclusive ? 'alone' : '',
    run ? progressText(run) : '',
  ];
  return (
    <span class="holder">
      {run ? <StateLabel state={run.state} /> : null}{' '}
      <a href={addressOf('run', id)}>{lease.displayName || id.slice(-6)}</a>{' '}
      <span class="secondary">{facts.filter((fact) => fact !== '').join(' · ')}</span>
    </span>
  );
}

function DrainButton({ live, store, device }: Props & { device: DeviceJson }) {
  const reason = useRef<HTMLInputElement>(null);
  const update = (drainReason: string, done: string) => {
    live.client.call<DeviceJson>('PATCH', '/devices', { id: device.id, drainReason }).then(
      ({ unavailableReason = '' }) => {
        // Put back, it may still have a fault of its own.
        if (drainReason === '' && unavailableReason !== '') {
          sayProblem(`${device.id} still takes no runs`, unavailableReason);
        } else {
          say(`${device.id} ${done}`);
        }
        store.changed();
      },
      (error: unknown) => sayProblem(device.id ?? 'device', error),
    );
  };
  if (device.unavailableReason) {
    return (
      <button
        type="button"
        title="ends a drain or a quarantine; a device with another fault stays out of use"
        onClick={() => update('', 'takes runs again')}
      >
        put back
      </button>
    );
  }
  return (
    <Menu label="drain ▾" title={`take ${device.id} out of use`}>
      {(close) => (
        <form
          class="drain-form"
          onSubmit={(event) => {
            event.preventDefault();
            close();
            update(reason.current?.value.trim() || 'drained', 'takes no more runs');
          }}
        >
          <label>
            why <input ref={reason} type="text" autocomplete="off" required />
          </label>
          <button type="submit" class="danger">
            drain; what runs there goes on
          </button>
        </form>
      )}
    </Menu>
  );
}
