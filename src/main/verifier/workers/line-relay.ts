/**
 * Copies workers' standard output to the primary's in whole lines, so that lines of several workers never mix.
 * Backpressure reaches the workers: while the primary's output is blocked, they are not read, and their sinks report it.
 */
import type { Readable, Writable } from 'node:stream';

const LINE_FEED = 0x0a;

export function relayLines(from: Readable, to: Writable): void {
  let rest: Buffer = Buffer.alloc(0);
  from.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) {
      rest = Buffer.concat([rest, chunk]);
      return;
    }
    const lines = Buffer.concat([rest, chunk.subarray(0, end)]);
    rest = Buffer.from(chunk.subarray(end));
    if (to.write(lines)) return;
    from.pause();
    to.once('drain', () => from.resume());
  });
  from.on('end', () => {
    if (rest.byteLength > 0) to.write(Buffer.concat([rest, Buffer.of(LINE_FEED)]));
  });
}
