import { describe, expect, it } from 'vitest';
import { addPiece, keptBytes, noLog, textOf } from './log_text';

function piece(text: string, offset: number, attempt = 1) {
  const bytes = new TextEncoder().encode(text);
  return { data: btoa(String.fromCharCode(...bytes)), offset: String(offset), attempt };
}

describe('a log', () => {
  it('grows by what follows', () => {
    const log = addPiece(addPiece(noLog, piece('one\n', 0)), piece('two · µ\n', 4));
    expect(textOf(log)).toBe('one\ntwo · µ\n');
    expect(log.end).toBe(4 + 10);
  });
  it('puts a character together that came in two pieces', () => {
    const euro = new TextEncoder().encode('€');
    const half = (from: number, to: number) => btoa(String.fromCharCode(...euro.slice(from, to)));
    const first = addPiece(noLog, { data: half(0, 1), attempt: 1 });
    expect(textOf(addPiece(first, { data: half(1, 3), offset: '1', attempt: 1 }))).toBe('€');
  });
  it('begins anew with another attempt, and where something was left out', () => {
    const log = addPiece(noLog, piece('old\n', 0));
    expect(textOf(addPiece(log, piece('new\n', 0, 2)))).toBe('new\n');
    expect(textOf(addPiece(log, piece('cut\nwhole\n', 100)))).toBe('whole\n');
  });
  it('keeps its end, in whole lines', () => {
    const line = 'x'.repeat(999);
    let log = noLog;
    for (let index = 0; index < 300; index++) log = addPiece(log, piece(`${line}\n`, 1000 * index));
    expect(log.bytes.length).toBe(keptBytes);
    expect(textOf(log).startsWith(line)).toBe(true);
    expect(textOf(log).split('\n').length).toBe(263);
  });
});
