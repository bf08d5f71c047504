/**
 * Step 5 for an access token of an OAuth authorization server, in place of a passport. Its keys are found by issuer and `kid`
 * alone, never among those of brokers and clients.
 * Source: docs/design/protocol.md "Access tokens".
 */
import type { OAuthIssuer } from '../../../bundle/compile/snapshot.ts';
import type { TokenCredentials } from '../../../protocol/credentials.ts';
import { importPublicKey } from '../../../protocol/import-public-key.ts';
import { thumbprintOf } from '../../../protocol/public-key.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { hasEnded, hasStarted } from '../../../protocol/validity.ts';
import { verifyTokenSignature } from '../../../protocol/verify-signature.ts';
import { type Evaluation, required } from '../facts/evaluation.ts';

function issuerOf({ snapshot }: Evaluation, { token }: TokenCredentials): OAuthIssuer | undefined {
  return required(snapshot).oauthIssuers.get(token.issuer);
}

export function checkTokenKey(evaluation: Evaluation, credentials: TokenCredentials): Denial | undefined {
  const isKnown = issuerOf(evaluation, credentials)?.keys.has(credentials.token.keyId) === true;
  return isKnown ? undefined : deny('invalid_request_proof', 'key_unknown');
}

/** Also finds the holder key, which is in the proof: the token has its thumbprint. */
export function checkTokenSignature(
  evaluation: Evaluation,
  credentials: TokenCredentials,
): Denial | undefined {
  const { proof, token } = credentials;
  const { tokens } = evaluation.inputs;
  const key = required(issuerOf(evaluation, credentials)?.keys.get(token.keyId));
  const known = tokens?.get(token.sha256);
  if (known?.verifiedByThumbprint !== key.thumbprint) {
    const isSigned =
      token.algorithm === key.algorithm && verifyTokenSignature(key, token.signingInput, token.signature);
    if (!isSigned) return deny('invalid_request_proof', 'passport_signature');
  }
  if (thumbprintOf(proof.jwk) !== token.holderThumbprint) return deny('invalid_request_proof', 'proof_key');
  if (known?.verifiedByThumbprint === key.thumbprint) {
    evaluation.holder = known.holder;
    return undefined;
  }
  const holder = importPublicKey(proof.jwk);
  if (holder === undefined) return deny('invalid_request_proof', 'claims_not_allowed');
  tokens?.remember({ token, verifiedByThumbprint: key.thumbprint, holder });
  evaluation.holder = holder;
  return undefined;
}

/** What the bundle says of the issuer's tokens, and whether the route takes any. */
export function checkTokenClaims(evaluation: Evaluation, credentials: TokenCredentials): Denial | undefined {
  const { token } = credentials;
  const { tokenTypes } = required(issuerOf(evaluation, credentials));
  // Without the claims that name a caller there is none.
  if (!tokenTypes.has(token.type) || evaluation.evidence.caller === undefined) {
    return deny('invalid_request_proof', 'claims_not_allowed');
  }
  // Nothing ends a token before its time, which such routes ask for.
  const { acceptsUnrevocable, freshness } = required(evaluation.evidence.route);
  return freshness.kind === 'realtime' && !acceptsUnrevocable
    ? deny('invalid_request_proof', 'token_not_accepted')
    : undefined;
}

export function checkTokenTimes(evaluation: Evaluation, credentials: TokenCredentials): Denial | undefined {
  const { expiresAtSeconds, issuedAtSeconds, notBeforeSeconds = 0 } = credentials.token;
  const { maxTokenTtlSeconds, notBeforeSeconds: oldestSeconds = 0 } = required(
    issuerOf(evaluation, credentials),
  );
  const { skewSeconds } = required(evaluation.snapshot);
  const { nowSeconds } = evaluation.inputs;
  const ttlSeconds = expiresAtSeconds - issuedAtSeconds;
  if (!(ttlSeconds >= 1 && ttlSeconds <= maxTokenTtlSeconds)) {
    return deny('invalid_request_proof', 'passport_ttl');
  }
  if (!hasStarted(Math.max(issuedAtSeconds, notBeforeSeconds), nowSeconds, skewSeconds)) {
    return deny('invalid_request_proof', 'passport_not_yet_valid');
  }
  const isOver = issuedAtSeconds < oldestSeconds || hasEnded(expiresAtSeconds, nowSeconds, skewSeconds);
  return isOver ? deny('invalid_request_proof', 'passport_expired') : undefined;
}

export function checkTokenAudience(
  { evidence }: Evaluation,
  { token }: TokenCredentials,
): Denial | undefined {
  return token.audiences.includes(required(evidence.route).audience)
    ? undefined
    : deny('invalid_request_proof', 'audience');
}
