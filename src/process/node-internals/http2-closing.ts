/**
 * Keeps node:http2 from resetting a stream while its parser reads that stream: nghttp2 then goes on with memory that it has freed,
 * and the process may end (nodejs/node#64113). Any client could bring it about: after a GOAWAY, Node.js marks the connection as
 * closed, and refuses a request that came in the same read by such a reset. No benchmark justifies this file;
 * test/process/node-internals/http2-closing.test.ts fails when Node.js no longer calls `close` of a session for a GOAWAY.
 */
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';

/**
 * Call it for each new connection of a server. Its `close` then says GOAWAY and destroys the connection after its last stream, as
 * that of Node.js does; but requests that come before the GOAWAY has left are answered, not refused.
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
    if (isLeaving || session.destroyed) return;
    isLeaving = true;
    if (callback !== undefined) session.once('close', callback);
    later(() => {
      session.goaway(constants.NGHTTP2_NO_ERROR);
      destroyWhenEmpty();
    });
  };
}

/** Resets the stream once no parser reads it. */
export function resetAfterParsing(stream: { close(code: number): void }, code: number): void {
  setImmediate(() => stream.close(code));
}
