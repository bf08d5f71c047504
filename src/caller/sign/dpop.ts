/**
 * Signs a request with a DPoP proof beside its passport. The proof covers neither query nor headers nor body.
 * Source: RFC 9449 sections 4 and 7, docs/design/protocol.md "DPoP".
 */
import { ClientError } from '../../protocol/client-error.ts';
import { isDpopNonce, MAX_DPOP_PROOF_BYTES } from '../../protocol/dpop-proof.ts';
import { parsePassport } from '../../protocol/passport.ts';
import { pathOf } from '../../protocol/request-target.ts';
import { type SigningKey, signDpopProof } from '../../protocol/signing.ts';
import type { RouteProfile } from '../../protocol/signing-profile.ts';
import { AUTHORIZATION_HEADER, DPOP_HEADER, DPOP_SCHEME } from '../../protocol/wire-names.ts';
import type { RequestUrl } from '../request-url.ts';
import { CredentialHeaders } from './credential-headers.ts';
import type { RequestHeader } from './request-headers.ts';
import { credentialsTooLarge, type SigningPassport } from './signing-passport.ts';

interface DpopRequest {
  readonly method: string;
  readonly headers: readonly RequestHeader[];
  readonly signHeaders?: readonly string[];
}

interface DpopTerms {
  readonly profile: RouteProfile;
  readonly url: RequestUrl;
  readonly passport: SigningPassport;
  readonly jti: string;
  readonly issuedAtSeconds: number;
  readonly nonce: string | undefined;
}

/** @throws ClientError `header_reserved`, `header_invalid`, `credentials_too_large` */
export function signWithDpop(
  { headers, method, signHeaders = [] }: DpopRequest,
  { issuedAtSeconds, jti, nonce, passport, profile, url }: DpopTerms,
  key: SigningKey,
): CredentialHeaders {
  if (profile.passportHeader !== AUTHORIZATION_HEADER || withoutEarlierDpop(headers).some(isProof)) {
    throw new ClientError(
      'header_reserved',
      'a DPoP proof and its passport travel in dpop and authorization, which the application or passport_header uses',
    );
  }
  if (signHeaders.length > 0) throw new ClientError('header_invalid', 'a DPoP proof cannot cover headers');
  if (nonce !== undefined && !isDpopNonce(nonce)) {
    throw new ClientError('header_invalid', 'the DPoP nonce is not one of RFC 9449');
  }
  const proof = signDpopProof(
    {
      ...{ method, jti, issuedAtSeconds, nonce },
      url: `${url.origin}${pathOf(url.target)}`,
      tokenSha256: passport.sha256,
    },
    key,
  );
  if (proof.length > MAX_DPOP_PROOF_BYTES) throw credentialsTooLarge();
  return new CredentialHeaders([
    { name: 'Authorization', value: `${DPOP_SCHEME} ${passport.jws}` },
    { name: 'DPoP', value: proof },
  ]);
}

/** Leaves out the passport and the proof of an earlier signer, but never another token of the application. */
export function withoutEarlierDpop(headers: readonly RequestHeader[]): readonly RequestHeader[] {
  const [token, ...others] = headers.filter(isAuthorization);
  if (token === undefined || others.length > 0) return headers;
  const [, jws] = /^DPoP +(\S+)$/i.exec(token.value) ?? [];
  if (jws === undefined || parsePassport(jws) === undefined) return headers;
  return headers.filter((header) => !isAuthorization(header) && !isProof(header));
}

const isAuthorization = ({ name }: RequestHeader) => name.toLowerCase() === AUTHORIZATION_HEADER;
const isProof = ({ name }: RequestHeader) => name.toLowerCase() === DPOP_HEADER;
