/**
 * Keeps node:http2 from resetting a stream while its parser reads that stream: nghttp2 then goes on with memory that it has freed,
 * and the process may end (nodejs/node#64113). Any client could bring it about: after its GOAWAY, Node.js marks the connection as
 * closed, and refuses a request that came in the same read by such a reset. No benchmark justifies this file;
 * test/process/node-internals/http2-closing.test.ts fails when Node.js no longer calls `close` of a session for a GOAWAY.
 */
import { constants, type Http2Stream, type ServerHttp2Session } from 'node:http2';

/** RFC 9113 section 6.8: a GOAWAY that excludes no stream yet. */
const HIGHEST_STREAM_ID = 2 ** 31 - 1;

/**
 * Call it for each new connection of a server. Its `close` then waits until the parser has read what has come, and announces the end
 * before it begins: nghttp2 ignores the requests behind a GOAWAY that has left, so `close` of Node.js finds none to reset. Requests
 * that come before are answered.
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
    // That of Node.js forgets the callback of a second call.
    if (callback !== undefined) session.once('close', callback);
    if (isLeaving) return;
    isLeaving = true;
    later(() => {
      session.goaway(constants.NGHTTP2_NO_ERROR, HIGHEST_STREAM_ID);
      // Node.js writes before it calls this. While it cannot write, a reset frees nothing either.
      later(close);
    });
  };
}

/**
 * Resets the stream with INTERNAL_ERROR once no parser reads it. Its `close` would end it first (DATA with END_STREAM), so that what
 * is broken off would look whole to the peer. The stream emits `error`.
 */
export function resetAfterParsing(stream: Http2Stream): void {
  setImmediate(() => stream.destroy(new Error('broken off')));
}
