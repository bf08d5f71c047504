/** Reads the body that a proxy forwards with an authorization request. */
import type { IncomingMessage } from 'node:http';

/**
 * @returns undefined when it is larger than the maximum, or when the proxy ends the connection before its end; the rest is not
 * read then
 */
export function readWholeBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      request.pause();
      resolve(undefined);
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', () => resolve(undefined));
  });
}
