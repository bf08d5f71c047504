/** The certificates that the other side of a TLS connection presented. */
import type { TLSSocket } from 'node:tls';

/** One more than an SVID may have, so that a longer chain is refused instead of truncated to a valid one. */
const MAX_CERTIFICATES = 9;

/** In DER, as presented, leaf first; empty without a certificate. */
export function presentedChain(socket: TLSSocket): readonly Buffer[] {
  const chain: Buffer[] = [];
  let next = socket.getPeerX509Certificate();
  while (next !== undefined && chain.length < MAX_CERTIFICATES) {
    chain.push(next.raw);
    next = next.issuerCertificate;
  }
  return chain;
}
