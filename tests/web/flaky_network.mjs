// A network between a browser and a server that goes away and comes back: forwards TCP.
import { connect, createServer } from 'node:net';

export class FlakyNetwork {
  /** Bytes that have come from the server. */
  received = 0;
  #target;
  #pairs = new Set();
  #isCut = false;
  #server = createServer((near) => this.#accept(near));

  /** Listens; `forwardTo` says where to. */
  async listen() {
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this.#server.address().port;
  }

  /** `address`: host:port. */
  forwardTo(address) {
    const [host, port] = address.split(':');
    this.#target = { host, port: Number(port) };
  }

  /** Every connection breaks, and new ones do too, until `mend`. */
  cut() {
    this.#isCut = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  mend() {
    this.#isCut = false;
  }

  async close() {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near) {
    if (this.#isCut) {
      near.destroy();
      return;
    }
    const far = connect(this.#target);
    const pair = [near, far];
    far.on('data', (data) => {
      this.received += data.length;
    });
    this.#pairs.add(pair);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ]) {
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
