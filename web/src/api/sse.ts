// Parses Server-Sent Events from text that arrives in arbitrary pieces.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
//
// The browser's own EventSource cannot send an Authorization header, so the page reads the stream
// with fetch and parses it here.

export interface SseMessage {
  /** The event's name; "message" when the stream gives none. */
  event: string;
  data: string;
  /** The id of this very event; undefined when it has none. */
  id: string | undefined;
}

export class SseParser {
  private pending = '';
  private afterCarriageReturn = false;
  private event = '';
  private data: string[] = [];
  private id: string | undefined;

  /** Takes the next piece and returns the events that it completes. */
  push(piece: string): SseMessage[] {
    const messages: SseMessage[] = [];
    // A CRLF may be cut between two pieces: the LF then ends no line of its own.
    let start = this.afterCarriageReturn && piece.startsWith('\n') ? 1 : 0;
    if (piece.length > 0) this.afterCarriageReturn = piece.endsWith('\r');
    for (let at = start; at < piece.length; at++) {
      const code = piece.charCodeAt(at);
      if (code !== 10 && code !== 13) continue;
      const message = this.line(this.pending + piece.slice(start, at));
      if (message) messages.push(message);
      this.pending = '';
      if (code === 13 && piece.charCodeAt(at + 1) === 10) at++;
      start = at + 1;
    }
    this.pending += piece.slice(start);
    return messages;
  }

  private line(line: string): SseMessage | undefined {
    if (line === '') return this.dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    else if (field === 'id' && !value.includes('\0')) this.id = value;
    return undefined;
  }

  private dispatch(): SseMessage | undefined {
    const message =
      this.data.length > 0
        ? { event: this.event || 'message', data: this.data.join('\n'), id: this.id }
        : undefined;
    this.event = '';
    this.data = [];
    this.id = undefined;
    return message;
  }
}
