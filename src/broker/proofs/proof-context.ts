/** Inputs for verifying a caller's proof, and the checks that all signed proofs share. */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { type BrokerOperation, brokerText } from '../../protocol/broker-text.ts';
import { importPublicKey } from '../../protocol/import-public-key.ts';
import type { PublicJwk, PublicKey } from '../../protocol/public-key.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';
import type { SpiffeProblem } from '../../spiffe/spiffe-problem.ts';
import type { BrokerPorts, Connection } from '../broker-ports.ts';
import { BrokerProblem, type BrokerProblemCode } from '../broker-problems.ts';
import type { Challenges } from '../challenges.ts';

export interface ProofContext {
  readonly brokerUrl: string;
  readonly acceptsJwtSvids: boolean;
  readonly challenges: Challenges;
  readonly ports: Pick<BrokerPorts, 'softwareKeys' | 'trustBundles' | 'nowMs'>;
}

/** The request whose caller is verified. */
export interface ProvedRequest {
  readonly operation: BrokerOperation;
  /** `-` for an operation without one. */
  readonly audience: string;
  readonly connection: Connection;
}

/** @throws BrokerProblem `holder_key_invalid` */
export function importHolderKey(jwk: PublicJwk): PublicKey {
  const key = importPublicKey(jwk);
  if (key === undefined) throw new BrokerProblem('holder_key_invalid');
  return key;
}

export interface SignedParts {
  readonly challenge: string;
  readonly credentialSha256: string;
  readonly holder: PublicKey;
}

/** The bytes that the caller must have signed, rebuilt from what the broker knows itself. */
export function expectedText(
  { brokerUrl }: ProofContext,
  { operation, audience }: ProvedRequest,
  { challenge, credentialSha256, holder }: SignedParts,
): Buffer {
  return brokerText({
    operation,
    brokerUrl,
    challenge,
    credentialSha256,
    holderThumbprint: holder.thumbprint,
    audience,
  });
}

/** @throws BrokerProblem of the code */
export function requireSignature(
  key: PublicKey,
  text: Buffer,
  signature: string,
  code: BrokerProblemCode,
): void {
  // Canonical base64url: one signature has one spelling.
  const bytes = decodeBase64url(signature);
  if (bytes === undefined || !verifySignature(key, text, bytes)) throw new BrokerProblem(code);
}

export function svidProblem({ code, text }: SpiffeProblem): BrokerProblem {
  return new BrokerProblem(code, text);
}
