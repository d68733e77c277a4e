// What the queue says of runs, users and devices, in words and numbers; and where a move leads.
import { formatBytes, formatDuration } from '../format/format';
import type {
  DeviceJson,
  QueueEntryJson,
  UserUsageJson,
} from '../gen/normlab/v1/device_service_pb';
import type { ResourcesJson } from '../gen/normlab/v1/run_pb';

/**
 * What it waits for, without the time where there is one, which a page's clock tells better than a
 * sentence.
 */
export function reasonText({ waitReason = '', estimatedStartTime }: QueueEntryJson): string {
  // Without a time, what looks like one is the end of a run's name.
  if (!estimatedStartTime) return waitReason;
  return waitReason.replace(/(?:, any moment|, about \d+ (?:s|min|h|days)| in \d+ s)$/, '');
}

/** in 4 min, by the clock of this page; "now" for a time that has come. */
export function startText(entry: QueueEntryJson, now: number): string {
  if (!entry.estimatedStartTime) return '';
  const seconds = (Date.parse(entry.estimatedStartTime) - now) / 1000;
  return seconds <= 0 ? 'now' : `in ${formatDuration(Math.ceil(seconds))}`;
}

/** cpu:0 · 4 threads; gpu · 2 GPUs, 8.00 GiB each, alone */
export function asksText(entry: QueueEntryJson): string {
  const threads = Number(entry.threads ?? 0);
  const parts = [threads > 1 ? `${threads} threads` : '', resourcesText(entry.resources)];
  const asked = parts.filter((part) => part !== '').join(', ');
  return [entry.device ?? '', asked].filter((part) => part !== '').join(' · ');
}

/** 2 GPUs, 8.00 GiB, alone; '' where nothing was asked for. */
export function resourcesText(resources: ResourcesJson = {}): string {
  const { gpus = 0, gpuMemoryBytes = '0', exclusive = false } = resources;
  const parts: string[] = [];
  if (gpus > 0) parts.push(gpus === 1 ? '1 GPU' : `${gpus} GPUs`);
  if (Number(gpuMemoryBytes) > 0) parts.push(formatBytes(Number(gpuMemoryBytes)));
  if (exclusive) parts.push('alone');
  return parts.join(', ');
}

export interface Move {
  /** The body of the call. */
  place: { first: true } | { last: true } | { before: string } | { behind: string };
  name: string;
}

/** Where a run can be moved among the waiting runs of its user and class. */
export function movesOf(entry: QueueEntryJson, entries: readonly QueueEntryJson[]): Move[] {
  const own = entries.filter(
    (other) => other.user === entry.user && other.priority === entry.priority,
  );
  const at = own.findIndex((other) => other.run === entry.run);
  const [above, below] = [own[at - 1]?.run, own[at + 1]?.run];
  const moves: Move[] = [];
  if (above) moves.push({ name: 'up', place: { before: above } });
  if (below) moves.push({ name: 'down', place: { behind: below } });
  if (above) moves.push({ name: 'first', place: { first: true } });
  if (below) moves.push({ name: 'last', place: { last: true } });
  return moves;
}

/** The users, whose turn is next first: who has used least. */
export function standing(users: readonly UserUsageJson[]): UserUsageJson[] {
  const used = (user: UserUsageJson) => Number(user.decayedDeviceSeconds ?? 0);
  return [...users].sort((a, b) => used(a) - used(b));
}

export interface MemoryUse {
  total: number;
  /** By runs of this server, and by others; together what is in use. */
  own: number;
  foreign: number;
  /** 12.3 GiB of 80.0 GiB, 2.00 GiB of it by others */
  text: string;
}

/** undefined where a device has no memory of its own. */
export function memoryOf(device: DeviceJson): MemoryUse | undefined {
  const total = Number(device.memoryBytes ?? 0);
  if (total <= 0) return undefined;
  const used = Math.min(total, Number(device.memoryUsedBytes ?? 0));
  const foreign = Math.min(used, Number(device.foreignMemoryBytes ?? 0));
  const others = foreign > 0 ? `, ${formatBytes(foreign)} of it by others` : '';
  return {
    total,
    own: used - foreign,
    foreign,
    text: `${formatBytes(used)} of ${formatBytes(total)}${others}`,
  };
}
