/** Reads the body of a request before its handler runs, and returns the bytes to the stream for the next reader. */
import type { IncomingMessage } from 'node:http';
import type { HeldSpace } from '../../process/request-body/body-space.ts';
import { GrowingBuffer } from '../../process/request-body/growing-buffer.ts';

export type BodyRead =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  | { readonly kind: 'too_large' }
  /** The limit for the bodies of all requests, or of one caller, is exhausted. */
  | { readonly kind: 'no_room' }
  /** The client ended the connection before the body was complete. */
  | { readonly kind: 'aborted' };

/**
 * Whether other code has begun to read the body or has replaced it, so that the bytes that handlers get are unknown.
 */
export function isBodyTouched(request: IncomingMessage): boolean {
  return (
    request.readableDidRead ||
    request.readableFlowing !== null ||
    request.readableEncoding !== null ||
    request.listenerCount('data') > 0 ||
    request.listenerCount('readable') > 0 ||
    Object.hasOwn(request, 'body') ||
    Object.hasOwn(request, 'rawBody')
  );
}

/** Never rejects. After `read`, the request can be read from its beginning. */
export function readBody(request: IncomingMessage, maxBytes: number, held: HeldSpace): Promise<BodyRead> {
  return new Promise((resolve) => {
    const body = new GrowingBuffer();
    const finish = (result: BodyRead) => {
      request.off('readable', take);
      request.off('close', abort);
      request.off('error', abort);
      resolve(result);
    };
    const abort = () => finish({ kind: 'aborted' });
    const take = () => {
      for (let chunk: Buffer | null = request.read(); chunk !== null; chunk = request.read()) {
        const bytes = body.lengthBytes + chunk.length;
        if (bytes > maxBytes) return finish({ kind: 'too_large' });
        if (!held.atLeast(bytes)) return finish({ kind: 'no_room' });
        body.append(chunk);
      }
      if (!request.complete) return;
      const bytes = body.bytes();
      // Before its `end` event a stream accepts bytes that were read from it.
      if (bytes.length > 0) request.unshift(bytes);
      finish({ kind: 'read', bytes });
    };
    request.on('readable', take);
    request.on('close', abort);
    request.on('error', abort);
  });
}
