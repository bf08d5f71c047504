/**
 * Keeps one turn of the event loop short while clients send bodies in tiny chunks. Node's HTTP/1.1 parser calls JavaScript for
 * each chunk, 10,000 times for 64 KiB, and libuv reads each socket up to 32 times in one turn: 500 clients held up `/livez` and
 * everyone else for 10 seconds. After {@link CHUNKS_OF_TURN} chunks in one turn, all connections wait for the next
 * turn, in which the senders of those chunks come last. A limit that test/process/node-internals/read-turns.test.ts
 * shows to work justifies this file; without `_handle` Node.js reads the connections as usual.
 */
import type { Socket } from 'node:net';

/** Takes about 10 ms. Bodies in chunks of a kilobyte stay far below it. */
const CHUNKS_OF_TURN = 5_000;

/** Part of `StreamBase` in Node.js. `reading` is false while Node.js itself has stopped reading, for back-pressure. */
interface Handle {
  readonly reading: boolean;
  readStop(): void;
  readStart(): void;
}

/**
 * Connections to read first in the next turn. They are global, because all servers of a process share one event loop.
 */
const handles = new Set<Handle>();
/** Connections that have ended a turn; they are read after all others. */
const senders = new Set<Handle>();
let stopped: readonly Handle[] = [];
let chunksOfTurn = 0;

/**
 * Call it for each connection of a node:http server before anything is read from it; over TLS for the one that is decrypted.
 * node:http2 stops and starts its connections itself.
 * @returns a function that removes the connection
 */
export function readInTurns(socket: Socket): () => void {
  const handle = handleOf(socket);
  if (handle === undefined) return () => undefined;
  handles.add(handle);
  const leave = () => {
    handles.delete(handle);
    senders.delete(handle);
  };
  socket.once('close', leave);
  return leave;
}

/** Call it for each chunk that a client sends. */
export function countChunk(socket: Socket): void {
  if (chunksOfTurn === 0) setImmediate(beginTurn);
  chunksOfTurn += 1;
  if (chunksOfTurn !== CHUNKS_OF_TURN) return;
  const sender = handleOf(socket);
  if (sender !== undefined && (handles.delete(sender) || senders.delete(sender))) senders.add(sender);
  stopped = [...handles, ...senders].filter(({ reading }) => reading);
  for (const handle of stopped) handle.readStop();
}

function beginTurn(): void {
  chunksOfTurn = 0;
  for (const handle of stopped)
    if (handle.reading && (handles.has(handle) || senders.has(handle))) handle.readStart();
  stopped = [];
}

function handleOf(socket: Socket): Handle | undefined {
  return (socket as Socket & { readonly _handle?: Handle | null })._handle ?? undefined;
}
