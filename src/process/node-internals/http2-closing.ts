/**
 * Keeps node:http2 from resetting a stream while its parser reads that stream: nghttp2 then goes on with memory that it has freed,
 * and the process may end (nodejs/node#64113). Any client could bring it about: after its GOAWAY, Node.js marks the connection as
 * closed, and refuses a request that came in the same read by such a reset. No benchmark justifies this file;
 * test/process/node-internals/http2-closing.test.ts fails when Node.js no longer calls `close` of a session for a GOAWAY.
 */
import { constants, type Http2Stream, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';

/**
 * Call it for each new connection of a server. Its `close` then sends GOAWAY and destroys the connection after its last stream, as
 * that of Node.js does. Requests that come before this GOAWAY has left are answered, not refused; `closed` stays false.
 */
export function closeAfterParsing(session: ServerHttp2Session): void {
  let streams = 0;
  let isLeaving = false;
  /** Once the parser has read what has come. */
  const later = (act: () => void) =>
    setImmediate(() => {
      if (!session.destroyed) act();
    });
  const destroyWhenEmpty = () => {
    if (isLeaving && streams === 0) later(() => streams === 0 && session.destroy());
  };
  session.on('stream', (stream: ServerHttp2Stream) => {
    streams += 1;
    stream.once('close', () => {
      streams -= 1;
      destroyWhenEmpty();
    });
  });
  session.close = (callback) => {
    if (session.destroyed) return;
    // grpc-js asks `closed` whether it still needs to wait for the end.
    if (callback !== undefined) session.once('close', callback);
    if (isLeaving) return;
    isLeaving = true;
    later(() => {
      session.goaway(constants.NGHTTP2_NO_ERROR);
      destroyWhenEmpty();
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
