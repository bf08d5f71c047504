/** Reads a whole body into memory, within the limit for one body and the limit for all bodies. */
import type { Readable } from 'node:stream';
import type { HeldSpace } from './body-space.ts';
import { GrowingBuffer } from './growing-buffer.ts';

export type BodyRead =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  | { readonly kind: 'too_large' | 'no_room' }
  /** The sender left before the end. */
  | { readonly kind: 'aborted' };

/**
 * Never rejects. Afterwards the stream is paused, and the rest is not read. A body without room releases its space at
 * once, because otherwise two concurrent bodies would both be refused.
 */
export function readBody(stream: Readable, maxBytes: number, held: HeldSpace): Promise<BodyRead> {
  return new Promise((resolve) => {
    const body = new GrowingBuffer();
    const finish = (result: BodyRead) => {
      stream.off('data', take).off('end', end).off('error', abort).off('close', abort);
      // An error may still follow.
      stream.on('error', () => undefined);
      stream.pause();
      resolve(result);
    };
    const take = (chunk: Buffer) => {
      const bytes = body.lengthBytes + chunk.length;
      if (bytes > maxBytes) return finish({ kind: 'too_large' });
      if (!held.atLeast(bytes)) {
        held.release();
        return finish({ kind: 'no_room' });
      }
      body.append(chunk);
    };
    const end = () => finish({ kind: 'read', bytes: body.bytes() });
    const abort = () => finish({ kind: 'aborted' });
    stream.on('data', take).on('end', end).on('error', abort).on('close', abort);
  });
}
