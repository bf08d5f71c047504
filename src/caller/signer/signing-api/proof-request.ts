/** Body of `POST /v1/proofs`: the request to sign. Source: docs/operate/signer.md "Signing API". */
import { hash } from 'node:crypto';
import { isBase64urlOf32Bytes } from '../../../protocol/base64url.ts';
import { isDpopNonce } from '../../../protocol/dpop-proof.ts';
import { isIdentifier } from '../../../protocol/identifiers.ts';
import { ObjectReader, textThat } from '../../../protocol/object-reader.ts';
import { parseStrictJson, StrictJsonError } from '../../../protocol/strict-json.ts';
import type { RequestHeader } from '../../sign/request-headers.ts';
import type { RequestToSign } from '../../sign/request-signer.ts';

/** Thrown for a body that is not a request to sign. */
export class ProofRequestError extends Error {
  override readonly name = 'ProofRequestError';
}

const MEMBERS = ['method', 'url', 'headers', 'body_sha256', 'route_id', 'dpop_nonce'];
const MAX_HEADERS = 32;
const SHA256_OF_NOTHING = hash('sha256', '', 'base64url');

/** @throws ProofRequestError */
export function parseProofRequest(text: string): RequestToSign {
  const root = new ObjectReader(parseJson(text), '', (place, problem) => {
    return new ProofRequestError(`${place === '' ? 'the body' : place} ${problem}`);
  });
  root.rejectUnknownMembers(MEMBERS);
  const headers = root.optional('headers', isHeaders, `a list of at most ${MAX_HEADERS} [name, value]`) ?? [];
  const sha256 = root.optional('body_sha256', textThat(isBase64urlOf32Bytes), 'a SHA-256 in base64url');
  const routeId = root.optional('route_id', isIdentifier, 'a route ID');
  const dpopNonce = root.optional('dpop_nonce', textThat(isDpopNonce), 'a DPoP nonce');
  return {
    method: root.required('method', isText, 'a method'),
    url: root.required('url', isText, 'a URL'),
    headers: headers.map(([name, value]): RequestHeader => ({ name, value })),
    signHeaders: headers.map(([name]) => name),
    // Whether a body is bound depends only on whether it is empty.
    body: sha256 === undefined ? undefined : { sha256, byteLength: sha256 === SHA256_OF_NOTHING ? 0 : 1 },
    ...(dpopNonce === undefined ? {} : { dpopNonce }),
    ...(routeId === undefined ? {} : { choice: { kind: 'route_id', routeId } }),
  };
}

const isText = textThat((text) => text.length <= 8192);

function isHeaders(value: unknown): value is readonly (readonly [string, string])[] {
  return Array.isArray(value) && value.length <= MAX_HEADERS && value.every(isHeader);
}

function isHeader(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every(isText);
}

function parseJson(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof StrictJsonError) throw new ProofRequestError(`the body: ${error.message}`);
    throw error;
  }
}
