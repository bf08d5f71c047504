/**
 * Joins the small chunks of a request's body while nothing reads them. Node's HTTP parsers push each chunk of a client as a
 * Buffer of its own, about 200 bytes for one byte, and a stream counts its high-water mark in bytes: a client that sends
 * one-byte chunks fills a queue of 64 KiB with 13 MiB. Limits depend on it, so no benchmark justifies this file:
 * test/process/node-internals/small-chunks.test.ts fails when the parsers no longer call `push`; the body then arrives
 * unjoined.
 */
import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { countChunk } from './read-turns.ts';

/** Longer chunks are queued as they are. */
const SMALL_BYTES = 4_096;
const FIRST_CAPACITY_BYTES = 256;
const NOTHING = Buffer.alloc(0);
/** After an answer, a connection that sends more than this number of chunks below {@link TINY_BYTES} is closed. */
const TINY_CHUNKS_AFTER_ANSWER = 1_000;
const TINY_BYTES = 64;

/** Call it before the first chunk: in the listener of `request` or `stream`. */
export function joinSmallChunks(stream: Readable): void {
  joinChunks(stream);
  if (stream instanceof IncomingMessage) countChunks(stream);
}

/** Node.js calls `_dump` when an answer was sent before the body was read, and then pushes nothing more. */
function countChunks(request: IncomingMessage & { _dump?: () => void }): void {
  const { push, socket } = request;
  let tinyAfterAnswer: number | undefined;
  request._dump = () => {
    tinyAfterAnswer ??= 0;
    // The same as in Node.js.
    request.removeAllListeners('data').resume();
  };
  request.push = (chunk, encoding) => {
    if (chunk !== null) countChunk(socket);
    if (tinyAfterAnswer !== undefined && Buffer.isBuffer(chunk) && chunk.length < TINY_BYTES) {
      tinyAfterAnswer += 1;
      if (tinyAfterAnswer > TINY_CHUNKS_AFTER_ANSWER) socket.destroy();
    }
    return push.call(request, chunk, encoding);
  };
}

function joinChunks(stream: Readable): void {
  const { push, read } = stream;
  let joined = NOTHING;
  let joinedBytes = 0;
  /** Whether a reader got nothing although bytes are queued, because it wants more at once and waits for `readable`. */
  let isShort = false;
  const flush = () => {
    if (joinedBytes === 0) return;
    const bytes = joined.subarray(0, joinedBytes);
    joined = NOTHING;
    joinedBytes = 0;
    push.call(stream, bytes);
  };
  stream.push = (chunk, encoding) => {
    const isSmall = Buffer.isBuffer(chunk) && chunk.length > 0 && chunk.length < SMALL_BYTES;
    if (!isSmall || isShort || stream.readableLength === 0) {
      isShort = false;
      flush();
      return push.call(stream, chunk, encoding);
    }
    if (joinedBytes + chunk.length > joined.length) {
      const grown = Buffer.allocUnsafeSlow(
        Math.max(joinedBytes + chunk.length, 2 * joined.length, FIRST_CAPACITY_BYTES),
      );
      joined.copy(grown, 0, 0, joinedBytes);
      joined = grown;
    }
    joined.set(chunk, joinedBytes);
    joinedBytes += chunk.length;
    return stream.readableLength + joinedBytes < stream.readableHighWaterMark;
  };
  stream.read = (size) => {
    // Streams call `read(0)` themselves, to ask for more.
    if (size === 0) return read.call(stream, size);
    flush();
    const chunk: unknown = read.call(stream, size);
    isShort = chunk === null;
    return chunk;
  };
}
