/** Signs a request for the wire with an HTTP message signature or a DPoP proof: correctly, or with the fault of a case. */
import { isBodyBound } from '../../../protocol/body-binding.ts';
import { passportSha256 } from '../../../protocol/passport.ts';
import { pathOf } from '../../../protocol/request-target.ts';
import {
  type DpopProofToSign,
  type HttpMessageToSign,
  newJti,
  signDpopProof,
  signHttpMessage,
} from '../../../protocol/signing.ts';
import {
  AUTHORIZATION_HEADER,
  CONTENT_DIGEST_HEADER,
  DPOP_HEADER,
  DPOP_SCHEME,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
} from '../../../protocol/wire-names.ts';
import { sha256DigestOf } from './content-digest-line.ts';
import type { HeaderLine, WireRequest } from './exchange.ts';
import {
  nowSeconds,
  PROOF_TTL_SECONDS,
  passportLine,
  passportOf,
  type WireCaller,
  type WireChanges,
  type WireTarget,
  wireRequest,
} from './sign-wire-request.ts';

export interface HttpChanges extends Omit<WireChanges, 'transcript'> {
  /** Whether the holder key signs beside a passport, which the signature covers. Default: the caller's own key signs alone. */
  readonly hasPassport?: boolean | undefined;
  /** What is signed with wrong values. */
  readonly message?: Partial<HttpMessageToSign> | undefined;
}

export function signHttpRequest(caller: WireCaller, target: WireTarget, changes: HttpChanges): WireRequest {
  const { body, hasPassport, message, signedHeaders = [] } = changes;
  const bytes = Buffer.from(body ?? '');
  const { authority, authSite, method, passportHeader = AUTHORIZATION_HEADER, scheme } = target;
  const digest: readonly HeaderLine[] = isBodyBound(method, target.bodyRule, bytes)
    ? [[CONTENT_DIGEST_HEADER, sha256DigestOf(bytes)]]
    : [];
  const passport: readonly HeaderLine[] =
    hasPassport === true ? [passportLine(passportHeader, passportOf(caller, target, changes))] : [];
  const covered = [...digest, ...passport].map(([name, value]) => ({ name, value }));
  const issuedAtSeconds = message?.issuedAtSeconds ?? nowSeconds();
  const { signature, signatureInput } = signHttpMessage(
    {
      ...{ authSite, method, scheme, authority, target: target.target, jti: newJti(), issuedAtSeconds },
      keyId: hasPassport === true ? caller.holder.publicKey.thumbprint : caller.keyId,
      headers: [...covered, ...signedHeaders],
      expiresAtSeconds: issuedAtSeconds + PROOF_TTL_SECONDS,
      ...message,
    },
    caller.holder,
  );
  return wireRequest(target, changes, [
    ...digest,
    ...passport,
    [HTTP_SIGNATURE_INPUT_HEADER, signatureInput],
    [HTTP_SIGNATURE_HEADER, signature],
  ]);
}

export interface DpopChanges extends Omit<WireChanges, 'transcript'> {
  /** What is signed with wrong values. */
  readonly proof?: Partial<DpopProofToSign> | undefined;
  /** Access token in place of a passport. */
  readonly token?: string | undefined;
}

export function signDpopRequest(caller: WireCaller, target: WireTarget, changes: DpopChanges): WireRequest {
  const { authority, method, scheme } = target;
  const token = changes.token ?? passportOf(caller, target, changes);
  const proof = signDpopProof(
    {
      ...{ method, jti: newJti(), issuedAtSeconds: nowSeconds(), nonce: undefined },
      url: `${scheme}://${authority}${pathOf(target.target)}`,
      tokenSha256: passportSha256(token),
      ...changes.proof,
    },
    caller.holder,
  );
  return wireRequest(target, changes, [
    [AUTHORIZATION_HEADER, `${DPOP_SCHEME} ${token}`],
    [DPOP_HEADER, proof],
  ]);
}
