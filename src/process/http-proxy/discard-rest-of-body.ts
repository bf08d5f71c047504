/** Reads the rest of a request's body after its answer, so that no reset overtakes the answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Maximum number of bytes to discard. */
const DISCARD_BYTES = 262_144;
const DISCARD_MS = 1_000;

/**
 * A response may end before the request's body. The connection can serve another request only after the rest; when that
 * is long or slow, the connection closes.
 */
export function discardRestOfBody(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete || request.socket.destroyed) return;
    const { socket } = request;
    let bytes = 0;
    const timer = setTimeout(() => socket.destroy(), DISCARD_MS).unref();
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > DISCARD_BYTES) socket.destroy();
    });
    const stop = () => clearTimeout(timer);
    request.once('end', stop).once('close', stop);
    request.resume();
  });
}
