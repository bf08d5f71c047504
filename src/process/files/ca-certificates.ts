/** Validates CA certificates that replace the system's trust store. */
import { X509Certificate } from 'node:crypto';
import { ClientError } from '../../protocol/client-error.ts';

/**
 * Returns the text if every certificate in it is valid. Node silently trusts no server when the text has no certificate.
 * @throws ClientError `ca_invalid`
 */
export function checkedCaPem(caPem: string): string {
  const certificates = caPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
    if (certificates.length > 0) return caPem;
  } catch {
    // Falls through: an invalid certificate is handled like a missing one.
  }
  throw new ClientError('ca_invalid', 'the CA file holds no certificate in PEM, or one that cannot be read');
}
