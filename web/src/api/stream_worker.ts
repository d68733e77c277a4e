// The shared worker: a thin host of the hub.
import { StreamHub, type ToHub } from './stream_hub';

const hub = new StreamHub();

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const port = event.ports[0];
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<ToHub>) =>
    hub.receive(port, data, (message) => port.postMessage(message));
};
