/** A request as the parts of the SDK pass it to the signer. */
import type { RequestToSign } from '../sign/request-signer.ts';

/** `stream`: a body that can be read once only. */
export interface PreparedRequest extends Omit<RequestToSign, 'body'> {
  readonly body: Uint8Array | 'stream' | undefined;
}

/** Headers to add to the request. Secret until it is sent; valid for one request. */
export type SignedHeaders = Readonly<Record<string, string>>;

/** @throws SignerError */
export type SignPrepared = (request: PreparedRequest) => Promise<SignedHeaders>;
