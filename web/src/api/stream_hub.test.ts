import { describe, expect, it } from 'vitest';
import type { StreamListener } from './event_stream';
import type { StreamEvent } from './events';
import { type FromHub, StreamHub } from './stream_hub';

function points(run: string): StreamEvent {
  return { kind: 'points', run, attempt: 1, columns: {} };
}

function scripted() {
  const made: { token: string; listener: StreamListener; watched: string[][]; stopped: boolean }[] =
    [];
  let now = 0;
  const hub = new StreamHub(
    ({ token }, listener) => {
      const one = { token, listener, watched: [] as string[][], stopped: false };
      made.push(one);
      return {
        watch: (runs) => one.watched.push(runs),
        retryNow: () => undefined,
        stop: () => {
          one.stopped = true;
        },
      };
    },
    () => now,
  );
  const open = (name: string) => {
    const got: FromHub[] = [];
    const send = (message: FromHub) => got.push(message);
    return {
      got,
      say: (message: Parameters<StreamHub['receive']>[1]) => hub.receive(name, message, send),
      events: () =>
        got.flatMap((m) => (m.type === 'events' ? m.events.map((event) => event.kind) : [])),
    };
  };
  return { hub, made, open, pass: (ms: number) => (now += ms) };
}

describe('StreamHub', () => {
  it('has one stream for all pages, watching what any of them draws', () => {
    const { made, open } = scripted();
    const [one, two] = [open('one'), open('two')];
    one.say({ type: 'hello', token: 't' });
    two.say({ type: 'hello', token: 't' });
    one.say({ type: 'watch', runs: ['a'] });
    two.say({ type: 'watch', runs: ['a', 'b'] });
    expect(made).toHaveLength(1);
    expect(made[0]?.watched.at(-1)).toEqual(['a', 'b']);
    two.say({ type: 'bye' });
    expect(made[0]?.watched.at(-1)).toEqual(['a']);
    one.say({ type: 'bye' });
    expect(made[0]?.stopped).toBe(true);
  });

  it('gives points only to pages that draw the run, and states to all', () => {
    const { hub, open } = scripted();
    const [one, two] = [open('one'), open('two')];
    for (const page of [one, two]) page.say({ type: 'hello', token: 't' });
    one.say({ type: 'watch', runs: ['a'] });
    hub.events([points('a'), points('b'), { kind: 'run', run: { id: 'a' } }]);
    expect(one.events()).toEqual(['points', 'run']);
    expect(two.events()).toEqual(['run']);
  });

  it('tells a second page that a run is covered already', () => {
    const { hub, open } = scripted();
    const [one, two] = [open('one'), open('two')];
    one.say({ type: 'hello', token: 't' });
    one.say({ type: 'watch', runs: ['a'] });
    hub.covered(['a']);
    two.say({ type: 'hello', token: 't' });
    two.say({ type: 'watch', runs: ['a'] });
    expect(two.got.at(-1)).toEqual({ type: 'covered', runs: ['a'] });
    // Nobody watches it any more: its points are missed from now on.
    for (const page of [one, two]) page.say({ type: 'watch', runs: [] });
    one.say({ type: 'watch', runs: ['a'] });
    expect(one.got.filter((m) => m.type === 'covered' && m.runs.length > 0)).toHaveLength(1);
  });

  it('names no run that was deleted, and tells pages that come later of problems', () => {
    const { hub, made, open } = scripted();
    const [one, two, three] = [open('one'), open('two'), open('three')];
    one.say({ type: 'hello', token: 't' });
    one.say({ type: 'watch', runs: ['a', 'b'] });
    hub.events([
      { kind: 'deleted', run: 'a' },
      { kind: 'notice', problems: ['the disk is full'] },
    ]);
    expect(made[0]?.watched.at(-1)).toEqual(['b']);
    two.say({ type: 'hello', token: 't' });
    expect(two.got).toContainEqual({
      type: 'events',
      events: [{ kind: 'notice', problems: ['the disk is full'] }],
    });
    hub.events([{ kind: 'notice', problems: [] }]);
    three.say({ type: 'hello', token: 't' });
    expect(three.got.at(-1)).toEqual({
      type: 'events',
      events: [{ kind: 'notice', problems: [] }],
    });
  });

  it('forgets a page that fell silent, and asks who it is when it returns', () => {
    const { open, made, pass } = scripted();
    const [one, two] = [open('one'), open('two')];
    one.say({ type: 'hello', token: 't' });
    one.say({ type: 'watch', runs: ['a'] });
    pass(200_000);
    two.say({ type: 'hello', token: 't' });
    expect(made[0]?.watched.at(-1)).toEqual([]);
    one.say({ type: 'here' });
    expect(one.got.at(-1)).toEqual({ type: 'who' });
  });

  it('starts a new stream for a new token', () => {
    const { made, open } = scripted();
    const page = open('one');
    page.say({ type: 'hello', token: 't' });
    page.say({ type: 'hello', token: 'u' });
    expect(made.map((one) => [one.token, one.stopped])).toEqual([
      ['t', true],
      ['u', false],
    ]);
  });
});
