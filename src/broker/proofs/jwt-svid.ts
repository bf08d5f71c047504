/**
 * A JWT-SVID whose only audience names this broker and one holder key, which signs the challenge. A token that was
 * stolen, or relayed from another service, is useless without the holder key.
 */

import { credentialSha256, jwtSvidAudience } from '../../protocol/broker-text.ts';
import { verifyJwtSvid } from '../../spiffe/jwt-svid.ts';
import type { CallerProof } from '../broker-contract.ts';
import { MAX_PASSPORT_TTL_SECONDS } from '../broker-ports.ts';
import { BrokerProblem } from '../broker-problems.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import {
  expectedText,
  importHolderKey,
  type ProofContext,
  type ProvedRequest,
  requireSignature,
  svidProblem,
} from './proof-context.ts';

type JwtSvidProof = Extract<CallerProof, { kind: 'jwt_svid' }>;

export async function verifyJwtSvidProof(
  context: ProofContext,
  request: ProvedRequest,
  proof: JwtSvidProof,
): Promise<VerifiedCaller> {
  if (!context.acceptsJwtSvids) throw new BrokerProblem('jwt_svid_not_accepted');
  context.challenges.check(proof.challenge);
  const holder = importHolderKey(proof.holder_jwk);
  const sha256 = credentialSha256(proof.token);
  const text = expectedText(context, request, { ...proof, credentialSha256: sha256, holder });
  requireSignature(holder, text, proof.holder_signature, 'holder_signature_invalid');
  const svid = await verifyJwtSvid(proof.token, {
    audience: jwtSvidAudience(context.brokerUrl, holder.thumbprint),
    bundles: context.ports.trustBundles,
    nowMs: context.ports.nowMs(),
  });
  if (svid.kind === 'problem') throw svidProblem(svid);
  return {
    proof: 'jwt_svid',
    keyBinding: 'attested_workload',
    trustDomain: svid.trustDomain,
    subject: svid.spiffeId,
    holder,
    credentialSha256: sha256,
    credentialThumbprint: undefined,
    credentialEndsMs: svid.notAfterMs,
    maxPassportTtlSeconds: MAX_PASSPORT_TTL_SECONDS,
  };
}
