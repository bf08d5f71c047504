/** Certificates that a person names to trust instead of the system's. */
import { X509Certificate } from 'node:crypto';
import { ClientError } from './client-error.ts';

/**
 * The same text when it can be trusted as a whole. Node trusts nobody, and says nothing, when it holds no certificate.
 * @throws ClientError `ca_invalid`
 */
export function checkedCaPem(caPem: string): string {
  const certificates = caPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
    if (certificates.length > 0) return caPem;
  } catch {
    // Falls through: one that cannot be read is as bad as none.
  }
  throw new ClientError('ca_invalid', 'the CA file holds no certificate in PEM, or one that cannot be read');
}
