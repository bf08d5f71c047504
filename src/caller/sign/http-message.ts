/**
 * Signs a request as an HTTP message (RFC 9421), with a derived key and without a passport.
 * Source: docs/design/protocol.md "HTTP Message Signatures".
 */
import { type BodyDigest, isBodyBound, sha256OfBody } from '../../protocol/body-binding.ts';
import { ClientError } from '../../protocol/client-error.ts';
import { HTTP_SIGNATURE_LABEL, type SigningKey, signHttpMessage } from '../../protocol/signing.ts';
import type { RouteProfile } from '../../protocol/signing-profile.ts';
import { MAX_FIELD_BYTES } from '../../protocol/structured-fields.ts';
import type { SignedHeader } from '../../protocol/transcript.ts';
import {
  CONTENT_DIGEST_HEADER,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
} from '../../protocol/wire-names.ts';
import type { SelectedProfile } from '../profiles/select-profile.ts';
import type { RequestUrl } from '../request-url.ts';
import { CredentialHeaders } from './credential-headers.ts';
import { type RequestHeader, selectSignedHeaders } from './request-headers.ts';
import { credentialsTooLarge, requireOwnKey } from './signing-passport.ts';

const CONTENT_TYPE = 'content-type';
const NO_BODY = new Uint8Array(0);

/** What a signature covers beside the URL. */
interface MessageContent {
  readonly method: string;
  readonly body?: Uint8Array | BodyDigest | undefined;
  readonly headers: readonly RequestHeader[];
  readonly signHeaders?: readonly string[];
}

export interface ProofTerms {
  readonly jti: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

export interface SignedMessage {
  readonly headers: CredentialHeaders;
  readonly keyId: string;
  readonly signedHeaderNames: readonly string[];
}

/**
 * @throws ClientError `key_id_missing`, `passport_required`, `url_not_canonical`, `header_reserved`, `credentials_too_large`, and
 * as `selectSignedHeaders`
 */
export function signAsHttpMessage(
  request: MessageContent,
  { profile, profiles, url }: SelectedProfile & { readonly url: RequestUrl },
  key: SigningKey,
  terms: ProofTerms,
): SignedMessage {
  const { coordinates } = profiles;
  const keyId = requireOwnKey(coordinates);
  if (/^[^?]*\?$/.test(url.target)) {
    throw new ClientError(
      'url_not_canonical',
      'an HTTP message signature cannot tell a URL that ends with "?" from one without: leave it out',
    );
  }
  refuseOtherSignatures(request.headers);
  const digest = digestHeader(request, profile);
  const headers = headersToSign(request, profile, digest);
  const { authority, scheme, target } = url;
  const { authSite } = coordinates;
  const message = { authSite, keyId, method: request.method, scheme, authority, target, headers, ...terms };
  const { signature, signatureInput } = signHttpMessage(message, key);
  if (signatureInput.length > MAX_FIELD_BYTES) throw credentialsTooLarge();
  return {
    headers: new CredentialHeaders([
      ...(digest === undefined ? [] : [digest]),
      { name: 'Signature-Input', value: signatureInput },
      { name: 'Signature', value: signature },
    ]),
    keyId,
    signedHeaderNames: headers.map(({ name }) => name),
  };
}

/** An application's `Content-Digest` on a route that binds the body is replaced, because it may be that of an earlier body. */
function digestHeader(
  { body = NO_BODY, headers, method }: MessageContent,
  { body: rule }: RouteProfile,
): RequestHeader | undefined {
  const isGiven = headers.some(({ name }) => name.toLowerCase() === CONTENT_DIGEST_HEADER);
  if (!isBodyBound(method, rule, body) && !(isGiven && rule === 'bound')) return undefined;
  const sha256 = Buffer.from(sha256OfBody(body), 'base64url').toString('base64');
  return { name: 'Content-Digest', value: `sha-256=:${sha256}:` };
}

/** As {@link selectSignedHeaders}, with the digest and the type of a bound body. */
function headersToSign(
  { headers, signHeaders = [] }: MessageContent,
  profile: RouteProfile,
  digest: RequestHeader | undefined,
): readonly SignedHeader[] {
  const isNamed =
    (header: string) =>
    ({ name }: RequestHeader) =>
      name.toLowerCase() === header;
  const own = headers.filter((header) => !isNamed(CONTENT_DIGEST_HEADER)(header));
  const given = digest === undefined ? headers : [...own, digest];
  const ofBody = [CONTENT_DIGEST_HEADER, CONTENT_TYPE].filter((name) => given.some(isNamed(name)));
  const signed = selectSignedHeaders(
    given,
    profile,
    digest === undefined ? signHeaders : [...signHeaders, ...ofBody],
  );
  const refused = signed.find(({ name }) => isRefused(name, profile));
  if (refused === undefined) return signed;
  throw new ClientError(
    'header_invalid',
    `an HTTP message signature for this route cannot cover ${refused.name}`,
  );
}

/** The fields of the signature itself, and a digest that no verifier compares. */
function isRefused(name: string, { body }: RouteProfile): boolean {
  if (name === CONTENT_DIGEST_HEADER) return body === 'unbound';
  return name === HTTP_SIGNATURE_HEADER || name === HTTP_SIGNATURE_INPUT_HEADER;
}

/** Replaces an earlier signature of this signer, but never one of the application. */
function refuseOtherSignatures(headers: readonly RequestHeader[]): void {
  const valuesOf = (wanted: string) =>
    headers.flatMap(({ name, value }) => (name.toLowerCase() === wanted ? [value] : []));
  const inputs = valuesOf(HTTP_SIGNATURE_INPUT_HEADER);
  if (inputs.length === 0 && valuesOf(HTTP_SIGNATURE_HEADER).length === 0) return;
  if (inputs.length === 1 && inputs.every(isOfSigner)) return;
  throw new ClientError(
    'header_reserved',
    'the proof of this request travels in signature and signature-input, and the application has its own',
  );
}

function isOfSigner(input: string): boolean {
  return (
    input.startsWith(`${HTTP_SIGNATURE_LABEL}=(`) &&
    input.includes(';tag="proofgate/') &&
    !input.includes(', ')
  );
}
