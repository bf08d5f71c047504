/**
 * Keeps node:http2 from resetting a stream while its parser reads that stream: nghttp2 would then use freed memory, and
 * the process might crash (nodejs/node#64113). Any client could cause this: after its GOAWAY, Node.js marks the
 * connection as closed, and refuses a request from the same read by such a reset. No benchmark justifies this file;
 * test/process/node-internals/http2-closing.test.ts fails when Node.js no longer calls `close` of a session for a
 * GOAWAY.
 */
import { constants, type Http2Stream, type ServerHttp2Session } from 'node:http2';

/** RFC 9113 section 6.8: a GOAWAY that excludes no stream yet. */
const HIGHEST_STREAM_ID = 2 ** 31 - 1;

/**
 * Call it for each new connection of a server. Its `close` then waits until the parser has read the received bytes, and
 * first announces the end. nghttp2 ignores requests after a sent GOAWAY, so `close` of Node.js has none to reset.
 * Earlier requests are answered.
 */
export function closeAfterParsing(session: ServerHttp2Session): void {
  const close = session.close.bind(session);
  let isLeaving = false;
  const later = (act: () => void) =>
    setImmediate(() => {
      if (!session.destroyed) act();
    });
  session.close = (callback) => {
    if (session.destroyed) return;
    // Node.js's own `close` ignores the callback of a second call.
    if (callback !== undefined) session.once('close', callback);
    if (isLeaving) return;
    isLeaving = true;
    later(() => {
      session.goaway(constants.NGHTTP2_NO_ERROR, HIGHEST_STREAM_ID);
      // Node.js writes before it calls this callback. While it cannot write, a reset frees no memory.
      later(close);
    });
  };
}

/**
 * Resets the stream with INTERNAL_ERROR when no parser reads it. The stream's `close` would first end it (DATA with
 * END_STREAM), so that an interrupted response would look complete to the peer. The stream emits `error`.
 */
export function resetAfterParsing(stream: Http2Stream): void {
  setImmediate(() => stream.destroy(new Error('broken off')));
}
