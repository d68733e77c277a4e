// What users have used lately, which decides whose runs go first.
import { formatBytes, formatCount, formatDuration } from '../../format/format';
import type { UserUsageJson } from '../../gen/normlab/v1/device_service_pb';
import { standing } from '../../state/queue_text';

export function Standing({ users }: { users: readonly UserUsageJson[] }) {
  if (users.length === 0) return <p class="hint">Nobody runs, waits, or has run lately.</p>;
  const most = Math.max(1, ...users.map((user) => Number(user.decayedDeviceSeconds ?? 0)));
  const hasGpus = users.some((user) => Number(user.gpuMemoryBytes ?? 0) > 0);
  return (
    <>
      <div class="wide-table">
        <table class="standing">
          <thead>
            <tr>
              <th scope="col">who</th>
              <th scope="col" class="number" title="runs that hold a device">
                running
              </th>
              <th scope="col" class="number" title="runs that wait">
                waiting
              </th>
              {hasGpus ? (
                <th scope="col" class="number" title="memory of GPUs that their runs may use">
                  GPU memory
                </th>
              ) : null}
              <th
                scope="col"
                class="used"
                title="device time; that of a day ago counts half, of two days ago a quarter"
              >
                used lately
              </th>
            </tr>
          </thead>
          <tbody>
            {standing(users).map((user) => {
              const used = Number(user.decayedDeviceSeconds ?? 0);
              return (
                <tr key={user.user}>
                  <th scope="row">{user.user}</th>
                  <td class="number">{formatCount(Number(user.running ?? 0))}</td>
                  <td class="number">{formatCount(Number(user.queued ?? 0))}</td>
                  {hasGpus ? (
                    <td class="number">{formatBytes(Number(user.gpuMemoryBytes ?? 0))}</td>
                  ) : null}
                  <td class="used">
                    <span class="bar" aria-hidden="true">
                      <span class="own" style={{ width: `${(100 * used) / most}%` }} />
                    </span>{' '}
                    {formatDuration(used)}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="secondary">
        Within a class the next run is that of whoever has used least; each device held now counts
        as a minute more.
      </p>
    </>
  );
}
