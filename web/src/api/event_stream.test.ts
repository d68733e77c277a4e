import { describe, expect, it } from 'vitest';
import { EventStream, type StreamStatus } from './event_stream';

/** One connection as the test plays it: `say` sends text, `end` ends it. */
interface Connection {
  url: URL;
  authorization: string | null;
  say(text: string): void;
  end(): void;
}

function scripted(refusals: Response[] = [], now: () => number = Date.now) {
  const connections: Connection[] = [];
  const heard: string[] = [];
  let changed = () => {};
  const fake = async (input: unknown, init?: RequestInit): Promise<Response> => {
    const refusal = refusals.shift();
    if (refusal) return refusal;
    let body: ReadableStreamDefaultController<Uint8Array> | undefined;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        body = controller;
      },
    });
    init?.signal?.addEventListener('abort', () => body?.error(new Error('aborted')));
    connections.push({
      url: new URL(String(input), 'http://localhost'),
      authorization: new Headers(init?.headers).get('authorization'),
      say: (text) => body?.enqueue(new TextEncoder().encode(text)),
      end: () => body?.close(),
    });
    changed();
    return new Response(stream, { status: 200 });
  };
  const note = (text: string) => {
    heard.push(text);
    changed();
  };
  const stream = new EventStream(
    { token: 'secret', fetch: fake as typeof fetch, backoffMilliseconds: 1, now },
    {
      events: (events) => note(`events ${events.map((event) => event.kind).join()}`),
      status: (status: StreamStatus) => note(status.kind),
      covered: (runs) => note(`covered ${runs.join()}`),
      reset: () => note('reset'),
    },
  );
  /** Waits, however long, until `ready` says so. */
  const until = (ready: () => boolean) =>
    new Promise<void>((resolve) => {
      changed = () => ready() && resolve();
      changed();
    });
  return { stream, connections, heard, until };
}

const run = (id: number) => `id: s-${id}\nevent: run\ndata: {"id":"a"}\n\n`;

describe('EventStream', () => {
  it('takes a place in the stream first, then asks for points from there on', async () => {
    const { stream, connections, heard, until } = scripted();
    stream.watch(['b', 'a']);
    await until(() => heard.includes('live'));
    expect(connections[0]?.url.href).toBe('http://localhost/api/v1/events?all=true');
    expect(connections[0]?.authorization).toBe('Bearer secret');
    expect(heard).toEqual(['live']);
    connections[0]?.say(run(1));
    await until(() => connections.length === 2);
    expect(heard).toEqual(['live', 'events run', 'covered a,b']);
    expect(connections[1]?.url.searchParams.get('resume')).toBe('s-1');
    expect(connections[1]?.url.searchParams.get('runs')).toBe('a,b');
    stream.stop();
  });

  it('resumes after the last event when the connection breaks', async () => {
    const { stream, connections, heard, until } = scripted();
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say(run(1) + run(2));
    await until(() => heard.includes('events run,run'));
    connections[0]?.end();
    await until(() => connections.length === 2);
    expect(connections[1]?.url.searchParams.get('resume')).toBe('s-2');
    await until(() => heard.at(-1) === 'live');
    expect(heard).toContain('offline');
    expect(heard).not.toContain('reset');
    stream.stop();
  });

  it('gives up a connection that slept with its machine, as soon as somebody is back', async () => {
    let time = 1_000_000;
    const { stream, connections, heard, until } = scripted([], () => time);
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say(run(1));
    await until(() => heard.includes('events run'));
    time += 39_000;
    stream.retryNow();
    expect(connections).toHaveLength(1);
    time += 2_000;
    stream.retryNow();
    expect(connections).toHaveLength(2);
    expect(connections[1]?.url.searchParams.get('resume')).toBe('s-1');
    stream.stop();
  });

  it('takes a notice back when the next connection has none', async () => {
    const { stream, connections, heard, until } = scripted();
    const notice = 'event: notice\ndata: {"problems":["the disk is full"]}\n\n';
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say(notice + run(1));
    await until(() => heard.includes('events notice,run'));
    connections[0]?.end();
    await until(() => connections.length === 2);
    connections[1]?.say(notice);
    await until(() => heard.at(-1) === 'events notice');
    connections[1]?.end();
    await until(() => connections.length === 3);
    connections[2]?.say(run(2));
    await until(() => heard.at(-1) === 'events notice,run');
    connections[2]?.say(run(3));
    await until(() => heard.at(-1) === 'events run');
    stream.stop();
  });

  it('covers runs named later at once, since it resumes where it is', async () => {
    const { stream, connections, heard, until } = scripted();
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say(run(7));
    await until(() => heard.includes('events run'));
    stream.watch(['c']);
    expect(heard.at(-1)).toBe('covered c');
    await until(() => connections.length === 2);
    expect(connections[1]?.url.searchParams.get('resume')).toBe('s-7');
    stream.stop();
  });

  it('starts afresh, and says so, where its place is unknown to the server', async () => {
    const refusals: Response[] = [];
    const { stream, connections, heard, until } = scripted(refusals);
    stream.watch(['a']);
    await until(() => connections.length === 1);
    connections[0]?.say(run(1));
    await until(() => connections.length === 2);
    refusals.push(
      Response.json({ error: { status: 'OUT_OF_RANGE', message: 'foreign' } }, { status: 400 }),
    );
    connections[1]?.end();
    await until(() => connections.length === 3);
    expect(connections[2]?.url.href).toBe('http://localhost/api/v1/events?all=true');
    connections[2]?.say(run(1));
    await until(() => connections.length === 4);
    expect(heard.slice(heard.indexOf('reset'))).toEqual([
      'reset',
      'offline',
      'live',
      'events run',
      'covered a',
    ]);
    stream.stop();
  });

  it('has everything read again when a watched run is gone', async () => {
    const refusals: Response[] = [];
    const { stream, connections, heard, until } = scripted(refusals);
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say(run(1));
    await until(() => heard.includes('events run'));
    refusals.push(Response.json({ error: { status: 'NOT_FOUND' } }, { status: 404 }));
    stream.watch(['gone']);
    await until(() => heard.includes('reset'));
    stream.watch(['a']);
    await until(() => heard.at(-1) === 'live');
    expect(heard.at(-2)).toBe('covered a');
    stream.stop();
  });

  it('goes offline with the reason when the server sends an error', async () => {
    const { stream, connections, heard, until } = scripted();
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say('event: error\ndata: {"error":{"message":"disk"}}\n\n');
    await until(() => heard.includes('offline'));
    stream.stop();
  });

  it('takes what came before an error in the same piece', async () => {
    const { stream, connections, heard, until } = scripted();
    stream.watch([]);
    await until(() => connections.length === 1);
    connections[0]?.say(`${run(1)}event: error\ndata: {"error":{"status":"ABORTED"}}\n\n`);
    await until(() => heard.includes('offline'));
    expect(heard).toContain('events run');
    stream.stop();
  });

  it('stops at a token that the server does not take', async () => {
    const { stream, connections, heard, until } = scripted([new Response('{}', { status: 401 })]);
    stream.watch([]);
    await until(() => heard.includes('unauthorized'));
    expect(connections).toHaveLength(0);
  });

  it('does not open a second connection for the same runs', async () => {
    const { stream, connections, until } = scripted();
    stream.watch(['a', 'b']);
    stream.watch(['b', 'a', 'a']);
    await until(() => connections.length > 0);
    expect(connections).toHaveLength(1);
    stream.stop();
  });
});
