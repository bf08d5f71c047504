/** Converts a body to the bytes that the client hashes and sends. */
import { SignerError } from './signer-error.ts';

/** A body that has the same bytes each time it is read. */
export type SignableBody = string | ArrayBuffer | ArrayBufferView | URLSearchParams | Blob;

/** Undefined for a body that can be read only once, such as a stream, or whose bytes differ each time, such as a form. */
export async function bytesOf(body: unknown): Promise<Uint8Array | undefined> {
  if (typeof body === 'string' || body instanceof URLSearchParams) return Buffer.from(String(body));
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (body instanceof Blob) return new Uint8Array(await body.arrayBuffer());
  return undefined;
}

export function isAbsent(body: unknown): body is null | undefined {
  return body === undefined || body === null;
}

/** For a request that the server denied for want of a DPoP nonce, with a body that is gone. */
export function nonceForGoneBody(): SignerError {
  return new SignerError(
    'body_not_replayable',
    'the server denied the request and asks for a DPoP nonce, which is kept; this body can be sent only once: send the request again',
  );
}
