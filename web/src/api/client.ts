// Calls to the server's JSON API. Types come from the protos; only series have their own encoding.
import type {
  DeviceJson,
  ListDevicesResponseJson,
  QueueJson,
} from '../gen/normlab/v1/device_service_pb';
import type {
  ExperimentJson,
  ListExperimentsResponseJson,
  ListPresetsResponseJson,
  PresetJson,
} from '../gen/normlab/v1/experiment_service_pb';
import type { RunJson } from '../gen/normlab/v1/run_pb';
import type { ListRunsResponseJson } from '../gen/normlab/v1/run_service_pb';
import type { ExchangeLoginCodeResponseJson, UserJson } from '../gen/normlab/v1/user_service_pb';
import type { SeriesPart } from '../state/follower';
import type { Setting } from '../state/settings';
import type { SeriesAnswer } from './events';

/** What is wrong with a field of a request, by its name as declared: "spec.heads". */
export interface FieldProblem {
  field: string;
  description: string;
}

export class ApiError extends Error {
  constructor(
    readonly code: number,
    readonly status: string,
    message: string,
    readonly details: readonly FieldProblem[] = [],
  ) {
    super(message);
  }
}

/** What was submitted, or would be: the id of an experiment if it is one, and its runs. */
export interface Submitted {
  experiment: string;
  runs: readonly RunJson[];
}

export class Client {
  constructor(
    private readonly token: string,
    private readonly onUnauthorized: () => void,
  ) {}

  /**
   * A page of runs: those that `filter` names, in `order`; newest first without one. `pageToken` is
   * the `nextPageToken` of the page before.
   */
  listRuns(
    { filter, order }: { filter: string; order: string },
    pageSize: number,
    pageToken: string,
  ): Promise<ListRunsResponseJson> {
    const query = new URLSearchParams({ page_size: String(pageSize) });
    if (filter !== '') query.set('filter', filter);
    if (order !== '') query.set('order_by', order);
    if (pageToken !== '') query.set('page_token', pageToken);
    return this.get(`/runs?${query}`);
  }

  getRun(id: string): Promise<RunJson> {
    return this.get(`/runs/${encodeURIComponent(id)}`);
  }

  async listExperiments(): Promise<ExperimentJson[]> {
    const answer: ListExperimentsResponseJson = await this.get('/experiments?page_size=1000');
    return answer.experiments ?? [];
  }

  /** At most `size` of the runs that wait, in the order in which they are expected to start. */
  getQueue(size: number): Promise<QueueJson> {
    return this.get(`/queue?page_size=${size}`);
  }

  async listDevices(): Promise<DeviceJson[]> {
    const answer: ListDevicesResponseJson = await this.get('/devices');
    return answer.devices ?? [];
  }

  async listPresets(): Promise<PresetJson[]> {
    const answer: ListPresetsResponseJson = await this.get('/presets');
    return answer.presets ?? [];
  }

  /** Makes a run, or the runs of a preset; with `validateOnly` only says what would be made. */
  async submit(body: unknown, isPreset: boolean, validateOnly: boolean): Promise<Submitted> {
    const query = validateOnly ? '?validate_only=true' : '';
    if (!isPreset) {
      const run: RunJson = await this.call('POST', `/runs${query}`, body);
      return { experiment: '', runs: [run] };
    }
    const made: ExperimentJson = await this.call('POST', `/experiments${query}`, body);
    return { experiment: made.id ?? '', runs: made.runs ?? [] };
  }

  async listSettings(): Promise<Setting[]> {
    const answer: { settings?: Setting[] } = await this.get('/settings');
    return answer.settings ?? [];
  }

  getMe(): Promise<UserJson> {
    return this.get('/me');
  }

  /** Any number of series; those of a deep model are asked for in as few calls as addresses allow. */
  async readSeries(
    run: string,
    names: readonly string[],
    maxPoints: number,
    signal: AbortSignal,
    part: SeriesPart = {},
  ): Promise<Record<string, SeriesAnswer>> {
    const query = Object.entries({ max_points: maxPoints, ...part })
      .map(([name, value]) => `&${name}=${value}`)
      .join('');
    const answers = await Promise.all(
      // No name at all asks for every series.
      (names.length > 0 ? inAddresses(names) : ['']).map((some) =>
        this.get<{ columns?: Record<string, SeriesAnswer> }>(
          `/runs/${encodeURIComponent(run)}/series?names=${some}${query}`,
          signal,
        ),
      ),
    );
    return Object.assign({}, ...answers.map(({ columns }) => columns ?? {}));
  }

  private get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.call('GET', path, undefined, signal);
  }

  /** Any call of the API; throws an ApiError for what the server refuses. */
  async call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const response = await answerOf(`/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
    if (response.ok) return response.json();
    const error = await readError(response);
    if (response.status === 401) this.onUnauthorized();
    throw error;
  }
}

/** Exchanges the one-time code of `normlab open` for a token; needs none itself. */
export async function exchangeLoginCode(code: string): Promise<ExchangeLoginCodeResponseJson> {
  const response = await answerOf('/api/v1/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (!response.ok) throw await readError(response);
  return response.json();
}

/** Any answer of the server; browsers say only "Failed to fetch" when there is none. */
async function answerOf(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(path, request);
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new Error('the server does not answer');
  }
}

async function readError(response: Response): Promise<ApiError> {
  const body = await response.json().catch(() => undefined);
  return new ApiError(
    response.status,
    body?.error?.status ?? 'UNKNOWN',
    body?.error?.message ?? `the server answered ${response.status} ${response.statusText}`,
    body?.error?.details ?? [],
  );
}

// The server takes 8 KiB of headers.
const longestNames = 6_000;

/** Names as lists for addresses, each no longer than an address may be. */
export function inAddresses(names: readonly string[]): string[] {
  const lists: string[] = [];
  for (const name of names) {
    const text = encodeURIComponent(name).replaceAll('%2F', '/');
    const last = lists.at(-1);
    if (last === undefined || last.length + text.length >= longestNames) lists.push(text);
    else lists[lists.length - 1] = `${last},${text}`;
  }
  return lists;
}
