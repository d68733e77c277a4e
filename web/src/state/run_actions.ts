// What can be done with runs, when, by whom, and how the server is asked.
import type { Client } from '../api/client';
import { isolated } from '../format/format';
import { stateLook } from '../format/state';
import type { RunJson } from '../gen/normlab/v1/run_pb';

export interface RunAction {
  /** On its button: cancel. */
  name: string;
  /** What was done then: cancelled. */
  done: string;
  /** Asks first, since it cannot be taken back or costs time. */
  confirm: boolean;
  applies: (run: RunJson) => boolean;
  ask: (client: Client, run: RunJson) => Promise<unknown>;
}

const isQueued = (run: RunJson) => run.state === 'STATE_QUEUED';
const hasEnded = (run: RunJson) => stateLook(run.state).ended;
const isOneOf =
  (...states: RunJson['state'][]) =>
  (run: RunJson) =>
    states.includes(run.state);

function verb(name: string): RunAction['ask'] {
  return (client, run) => client.call('POST', `/runs/${run.id}:${name}`, {});
}

function change(fields: Partial<RunJson>): RunAction['ask'] {
  return (client, run) => client.call('PATCH', `/runs/${run.id}`, fields);
}

export const runActions: readonly RunAction[] = [
  {
    name: 'cancel',
    done: 'cancelled',
    confirm: true,
    applies: (run) => !hasEnded(run) && run.state !== 'STATE_CANCELLING',
    ask: verb('cancel'),
  },
  {
    name: 'pause',
    done: 'paused',
    confirm: true,
    applies: isOneOf('STATE_QUEUED', 'STATE_STARTING', 'STATE_RUNNING'),
    ask: verb('pause'),
  },
  {
    name: 'probe',
    done: 'asked for a probe, which comes with the next step',
    confirm: false,
    applies: isOneOf('STATE_RUNNING'),
    ask: verb('probe'),
  },
  {
    name: 'resume',
    done: 'resumed',
    confirm: false,
    applies: isOneOf('STATE_PAUSED'),
    ask: verb('resume'),
  },
  {
    name: 'retry',
    done: 'queued again',
    confirm: true,
    applies: (run) => hasEnded(run) && run.state !== 'STATE_SUCCEEDED',
    ask: verb('retry'),
  },
  {
    name: 'hold',
    done: 'held',
    confirm: false,
    applies: (run) => isQueued(run) && !run.held,
    ask: verb('hold'),
  },
  {
    name: 'release',
    done: 'released',
    confirm: false,
    applies: (run) => isQueued(run) && run.held === true,
    ask: verb('release'),
  },
  {
    name: 'pin',
    done: 'pinned',
    confirm: false,
    applies: (run) => !run.pinned,
    ask: change({ pinned: true }),
  },
  {
    name: 'unpin',
    done: 'unpinned',
    confirm: false,
    applies: (run) => run.pinned === true,
    ask: change({ pinned: false }),
  },
  {
    name: 'archive',
    done: 'archived',
    confirm: true,
    applies: (run) => hasEnded(run) && !run.archived,
    ask: change({ archived: true }),
  },
  {
    name: 'unarchive',
    done: 'back in the list',
    confirm: false,
    applies: (run) => run.archived === true,
    ask: change({ archived: false }),
  },
];

/** Gives runs a label, or takes it away. */
export function labelAction(label: string, isGiven: boolean): RunAction {
  return {
    name: isGiven ? 'label' : 'unlabel',
    done: isGiven ? 'labelled' : 'unlabelled',
    confirm: false,
    applies: (run) => (run.labels ?? []).includes(label) !== isGiven,
    ask: (client, run) => {
      const others = (run.labels ?? []).filter((one) => one !== label);
      return change({ labels: isGiven ? [...others, label] : others })(client, run);
    },
  };
}

/** Admins may change any run, members their own. The server has the last word. */
export function mayChange(run: RunJson, user: string, role: string): boolean {
  return role === 'admin' || (role === 'member' && run.user === user);
}

const atOnce = 4;

export interface Outcome {
  done: number;
  /** Why each of the others could not be done, with its name. */
  problems: string[];
}

/**
 * Does it with each of the runs, a few at a time, whatever comes of the others. `progress` is told of
 * how many runs the server has been asked.
 */
export async function doWithAll(
  client: Client,
  action: RunAction,
  runs: readonly RunJson[],
  progress: (asked: number) => void = () => undefined,
): Promise<Outcome> {
  const outcome: Outcome = { done: 0, problems: [] };
  const queue = [...runs];
  let asked = 0;
  const work = async () => {
    for (let run = queue.shift(); run; run = queue.shift()) {
      try {
        await action.ask(client, run);
        outcome.done++;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        outcome.problems.push(`${isolated(run.displayName ?? '')}: ${why}`);
      }
      progress(++asked);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return outcome;
}

/** 3 runs cancelled; 1 could not be: NAME: why */
export function outcomeText(action: RunAction, { done, problems }: Outcome): string {
  const runs = (count: number) => (count === 1 ? '1 run' : `${count} runs`);
  const parts = done > 0 ? [`${runs(done)} ${action.done}`] : [];
  if (problems.length > 0) {
    parts.push(`${runs(problems.length)} could not be: ${problems.slice(0, 3).join('; ')}`);
  }
  return parts.join('; ');
}
