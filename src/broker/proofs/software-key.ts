/**
 * Verifies a proof by a key that is registered at the broker. That key is the holder key, or it vouches for another
 * holder key, which signs too.
 */

import { commonProblem, type HttpProblem } from '../../process/http-service/http-problem.ts';
import { credentialSha256 } from '../../protocol/broker-text.ts';
import type { CallerProof } from '../broker-contract.ts';
import { BrokerProblem } from '../broker-problems.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import {
  expectedText,
  importHolderKey,
  type ProofContext,
  type ProvedRequest,
  requireSignature,
} from './proof-context.ts';

type SoftwareKeyProof = Extract<CallerProof, { kind: 'software_key' }>;

export function verifySoftwareKey(
  context: ProofContext,
  request: ProvedRequest,
  proof: SoftwareKeyProof,
): VerifiedCaller {
  context.challenges.check(proof.challenge);
  const registered = importHolderKey(proof.registered_jwk);
  const holder = proof.holder_jwk === undefined ? registered : importHolderKey(proof.holder_jwk);
  const sha256 = credentialSha256(registered.thumbprint);
  const text = expectedText(context, request, { ...proof, credentialSha256: sha256, holder });
  // Verified before the look-up, so that only the owner of a key learns whether it is registered.
  requireSignature(registered, text, proof.registered_signature, 'registered_signature_invalid');
  requireHolderSignature(proof, text);
  const key = context.ports.softwareKeys.find(registered.thumbprint);
  if (key === undefined) throw new BrokerProblem('key_not_registered');
  return {
    proof: 'software_key',
    keyBinding: 'software',
    trustDomain: key.trustDomain,
    subject: key.subject,
    holder,
    credentialSha256: sha256,
    credentialThumbprint: registered.thumbprint,
    credentialEndsMs: Number.POSITIVE_INFINITY,
    maxPassportTtlSeconds: key.maxPassportTtlSeconds,
  };
}

function requireHolderSignature({ holder_jwk, holder_signature }: SoftwareKeyProof, text: Buffer): void {
  if (holder_jwk === undefined && holder_signature === undefined) return;
  if (holder_jwk === undefined) throw missingMember('holder_jwk');
  if (holder_signature === undefined) throw missingMember('holder_signature');
  requireSignature(importHolderKey(holder_jwk), text, holder_signature, 'holder_signature_invalid');
}

function missingMember(name: string): HttpProblem {
  return commonProblem('request_malformed', {
    faults: [{ pointer: `/body/proof/${name}`, reason: 'missing' }],
  });
}
