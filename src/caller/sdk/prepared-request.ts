/** A request in the form in which the parts of the SDK pass it to the signer. */
import type { RequestHeader } from '../sign/request-headers.ts';
import type { RequestToSign } from '../sign/request-signer.ts';

/** `body` is `stream` for a body that can be read only once. */
export interface PreparedRequest extends Omit<RequestToSign, 'body'> {
  readonly body: Uint8Array | 'stream' | undefined;
}

/** Headers to add to the request. They are secret until the request is sent, and valid for one request. */
export type SignedHeaders = Readonly<Record<string, string>>;

/** @throws SignerError */
export type SignPrepared = (request: PreparedRequest) => Promise<SignedHeaders>;

/** As `readAnswer` of `RequestSigner`, with the URL as it was signed. */
export type ReadAnswer = (url: string, status: number, headers: readonly RequestHeader[]) => boolean;
