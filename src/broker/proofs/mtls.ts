/**
 * The client certificate of the connection, an X.509-SVID. CertificateVerify (RFC 8446 section 4.4.3) proved its key, which
 * becomes the holder key. The SVID is verified at every request: a connection outlives SVIDs and bundles.
 */
import { credentialSha256 } from '../../protocol/broker-text.ts';
import { verifyX509Svid } from '../../spiffe/x509-svid.ts';
import { MAX_PASSPORT_TTL_SECONDS } from '../broker-ports.ts';
import { BrokerProblem } from '../broker-problems.ts';
import { asHolderKey } from '../svid-signature.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import { type ProofContext, type ProvedRequest, svidProblem } from './proof-context.ts';

export function verifyMtls(context: ProofContext, { connection }: ProvedRequest): VerifiedCaller {
  if (connection.kind !== 'tls') throw new BrokerProblem('client_certificate_missing');
  if (connection.isResumed) throw new BrokerProblem('tls_session_resumed');
  const [leaf] = connection.clientCertificates;
  if (leaf === undefined) throw new BrokerProblem('client_certificate_missing');
  const svid = verifyX509Svid(
    connection.clientCertificates,
    context.ports.trustBundles,
    context.ports.nowMs(),
  );
  if (svid.kind === 'problem') throw svidProblem(svid);
  const holder = asHolderKey(svid.publicKey);
  if (holder === undefined) throw new BrokerProblem('holder_key_unsupported');
  return {
    proof: 'mtls',
    keyBinding: 'attested_workload',
    trustDomain: svid.trustDomain,
    subject: svid.spiffeId,
    holder,
    credentialSha256: credentialSha256(leaf),
    credentialThumbprint: holder.thumbprint,
    credentialEndsMs: svid.notAfterMs,
    maxPassportTtlSeconds: MAX_PASSPORT_TTL_SECONDS,
  };
}
