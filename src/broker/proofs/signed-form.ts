/**
 * An X.509-SVID in the body: its key and the holder key sign one text. Works behind TLS terminators, for RSA and P-384 SVIDs,
 * and for a holder key other than the SVID's. A proxy cannot swap the holder key: both signatures cover its thumbprint.
 */

import { decodeBase64url } from '../../protocol/base64url.ts';
import { credentialSha256 } from '../../protocol/broker-text.ts';
import { verifyX509Svid } from '../../spiffe/x509-svid.ts';
import type { CallerProof } from '../broker-contract.ts';
import { MAX_PASSPORT_TTL_SECONDS } from '../broker-ports.ts';
import { BrokerProblem } from '../broker-problems.ts';
import { keyThumbprint, verifySvidSignature } from '../svid-signature.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import {
  expectedText,
  importHolderKey,
  type ProofContext,
  type ProvedRequest,
  requireSignature,
  svidProblem,
} from './proof-context.ts';

type SignedForm = Extract<CallerProof, { kind: 'signed_form' }>;

export function verifySignedForm(
  context: ProofContext,
  request: ProvedRequest,
  form: SignedForm,
): VerifiedCaller {
  context.challenges.check(form.challenge);
  const holder = importHolderKey(form.holder_jwk);
  const chain = form.certificates.map(decodeCertificate);
  const svid = verifyX509Svid(chain, context.ports.trustBundles, context.ports.nowMs());
  if (svid.kind === 'problem') throw svidProblem(svid);
  const sha256 = credentialSha256(chain[0] ?? '');
  const text = expectedText(context, request, { ...form, credentialSha256: sha256, holder });
  const signature = decodeBase64url(form.svid_signature);
  if (signature === undefined || !verifySvidSignature(svid.publicKey, text, signature)) {
    throw new BrokerProblem('svid_signature_invalid');
  }
  requireSignature(holder, text, form.holder_signature, 'holder_signature_invalid');
  return {
    proof: 'signed_form',
    keyBinding: 'attested_workload',
    trustDomain: svid.trustDomain,
    subject: svid.spiffeId,
    holder,
    credentialSha256: sha256,
    credentialThumbprint: keyThumbprint(svid.publicKey),
    credentialEndsMs: svid.notAfterMs,
    maxPassportTtlSeconds: MAX_PASSPORT_TTL_SECONDS,
  };
}

/** Canonical base64 (RFC 4648 section 4), as in `x5c`. */
function decodeCertificate(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text)
    throw new BrokerProblem('svid_malformed', 'a certificate is not base64');
  return bytes;
}
