/**
 * Checks a broker's certificate by its SPIFFE ID instead of its host name. OpenSSL has already verified the path,
 * trusting only the authorities of that trust domain.
 * Source: X509-SVID specification section 5.2.
 */
import type { PeerCertificate } from 'node:tls';
import { parseCertificate } from '../../spiffe/certificate.ts';
import { checkLeaf } from '../../spiffe/x509-svid.ts';

/** Node's code for a certificate of another host. */
const WRONG_SERVER = { code: 'ERR_TLS_CERT_ALTNAME_INVALID' };

/** @returns the reason to refuse the server */
export function spiffeServerFault(spiffeId: string, { raw }: PeerCertificate): Error | undefined {
  const leaf = parseCertificate(raw);
  const id = leaf === undefined ? undefined : checkLeaf(leaf);
  if (id?.kind !== undefined && id.kind !== 'problem' && id.spiffeId === spiffeId) return undefined;
  return Object.assign(new Error('not the SPIFFE ID of the broker'), WRONG_SERVER);
}
