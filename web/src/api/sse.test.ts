import { describe, expect, it } from 'vitest';
import { SseParser } from './sse';

const stream =
  'id: s-1\nevent: points\ndata: {"run":"a"}\n\n: a comment\n\nevent: heartbeat\ndata: {}\n\n';

describe('SseParser', () => {
  it('reads name, data and id of each event', () => {
    expect(new SseParser().push(stream)).toEqual([
      { event: 'points', data: '{"run":"a"}', id: 's-1' },
      { event: 'heartbeat', data: '{}', id: undefined },
    ]);
  });

  it('gives the same events however the text is cut', () => {
    for (const text of [stream, stream.replaceAll('\n', '\r\n'), stream.replaceAll('\n', '\r')]) {
      const whole = new SseParser().push(stream);
      for (let size = 1; size < 9; size++) {
        const parser = new SseParser();
        const found = [];
        for (let at = 0; at < text.length; at += size) {
          found.push(...parser.push(text.slice(at, at + size)));
        }
        expect(found).toEqual(whole);
      }
    }
  });

  it('joins several data lines and takes off one space only', () => {
    expect(new SseParser().push('data:  a\ndata:b\ndata\n\n')).toEqual([
      { event: 'message', data: ' a\nb\n', id: undefined },
    ]);
  });

  it('drops an event without data, and an unfinished one', () => {
    expect(new SseParser().push('event: x\n\nretry: 5\n\ndata: half')).toEqual([]);
  });

  it('does not carry an id over to the next event', () => {
    const parser = new SseParser();
    const [first, second] = parser.push('id: 1\ndata: a\n\ndata: b\n\n');
    expect(first?.id).toBe('1');
    expect(second?.id).toBeUndefined();
  });
});
