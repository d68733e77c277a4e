import { describe, expect, it } from 'vitest';
import type { Client } from '../api/client';
import type { Run_StateJson, RunJson } from '../gen/normlab/v1/run_pb';
import { doWithAll, labelAction, mayChange, outcomeText, runActions } from './run_actions';

const names = (run: RunJson) =>
  runActions.filter((action) => action.applies(run)).map((action) => action.name);
const action = (name: string) => {
  const found = runActions.find((one) => one.name === name);
  if (!found) throw new Error(name);
  return found;
};

/** Notes what it is asked; refuses runs by these ids. */
function recorder(refused: string[] = []) {
  const calls: string[] = [];
  let now = 0;
  let most = 0;
  const client = {
    call: async (method: string, path: string, body: unknown) => {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
      calls.push(`${method} ${path} ${JSON.stringify(body)}`);
      if (refused.some((id) => path.includes(id))) throw new Error('no');
    },
  } as unknown as Client;
  return { client, calls, most: () => most };
}

describe('what can be done with a run', () => {
  it('follows its state', () => {
    const expected: [Run_StateJson, string][] = [
      ['STATE_QUEUED', 'cancel pause hold pin'],
      ['STATE_STARTING', 'cancel pause pin'],
      ['STATE_RUNNING', 'cancel pause probe pin'],
      ['STATE_PAUSING', 'cancel pin'],
      ['STATE_PAUSED', 'cancel resume pin'],
      ['STATE_CANCELLING', 'pin'],
      ['STATE_SUCCEEDED', 'pin archive'],
      ['STATE_FAILED', 'retry pin archive'],
      ['STATE_CANCELLED', 'retry pin archive'],
      ['STATE_DIVERGED', 'retry pin archive'],
      ['STATE_TIMED_OUT', 'retry pin archive'],
    ];
    for (const [state, wanted] of expected) expect(names({ state }).join(' ')).toBe(wanted);
    expect(names({ state: 'STATE_QUEUED', held: true })).toContain('release');
    expect(names({ state: 'STATE_FAILED', pinned: true, archived: true })).toEqual([
      'retry',
      'unpin',
      'unarchive',
    ]);
  });

  it('is for admins, and for members with their own runs', () => {
    const run = { user: 'ada' };
    expect(mayChange(run, 'bob', 'admin')).toBe(true);
    expect(mayChange(run, 'ada', 'member')).toBe(true);
    expect(mayChange(run, 'bob', 'member')).toBe(false);
    expect(mayChange(run, 'ada', 'viewer')).toBe(false);
    expect(mayChange(run, '', '')).toBe(false);
  });
});

describe('doing it', () => {
  it('asks for each run, a few at a time, and goes on after a refusal', async () => {
    const { client, calls, most } = recorder(['r3']);
    const runs = Array.from({ length: 9 }, (_, index) => ({
      id: `r${index}`,
      displayName: `run ${index}`,
    }));
    const told: number[] = [];
    const outcome = await doWithAll(client, action('cancel'), runs, (asked) => told.push(asked));
    expect(told).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(calls.sort()).toEqual(runs.map(({ id }) => `POST /runs/${id}:cancel {}`));
    expect(most()).toBe(4);
    expect(outcome.done).toBe(8);
    expect(outcomeText(action('cancel'), outcome)).toBe(
      '8 runs cancelled; 1 run could not be: \u2068run 3\u2069: no',
    );
  });

  it('adds a label to those there are, and takes it away again', async () => {
    const { client, calls } = recorder();
    const run = { id: 'a', labels: ['best'] };
    expect(labelAction('best', true).applies(run)).toBe(false);
    await doWithAll(client, labelAction('x y', true), [run]);
    await doWithAll(client, labelAction('best', false), [run]);
    expect(calls).toEqual([
      'PATCH /runs/a {"labels":["best","x y"]}',
      'PATCH /runs/a {"labels":[]}',
    ]);
  });
});
