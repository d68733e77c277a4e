// The end of an attempt's log, put together from pieces of bytes.
import type { ReadLogResponseJson } from '../gen/normlab/v1/run_service_pb';

export interface LogText {
  attempt: number;
  /** Of the first byte that is held. */
  begin: number;
  /** Where the next piece is asked for. */
  end: number;
  bytes: Uint8Array;
}

export const noLog: LogText = { attempt: 0, begin: 0, end: 0, bytes: new Uint8Array() };

/** More than anybody reads in a page. */
export const keptBytes = 256 * 1024;

/** Adds a piece; one of another attempt, or not right behind what is held, begins anew. */
export function addPiece(held: LogText, piece: ReadLogResponseJson): LogText {
  const bytes = fromBase64(piece.data ?? '');
  const offset = Number(piece.offset ?? 0);
  const attempt = piece.attempt ?? 0;
  const follows = attempt === held.attempt && offset === held.end;
  const all = follows ? joined(held.bytes, bytes) : bytes;
  const kept = all.slice(Math.max(0, all.length - keptBytes));
  const end = offset + bytes.length;
  return { attempt, begin: end - kept.length, end, bytes: kept };
}

/** Whole lines where the beginning is cut off, and the rest of a character where it is cut in two. */
export function textOf({ begin, bytes }: LogText): string {
  const firstLine = begin === 0 ? 0 : bytes.indexOf(0x0a) + 1;
  return new TextDecoder().decode(bytes.slice(firstLine));
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}
