/** The shipped file's TLS block with a test's certificates. */
import type { TestCertificates } from './certificates.ts';
import { type ConfigEdit, shipped } from './envoy-config.ts';

/** An operator's changes for TLS: files, the scheme, and the accepted client names. */
export function tlsEdits({ ca, server }: Pick<TestCertificates, 'ca' | 'server'>): readonly ConfigEdit[] {
  const common = [...shipped.filterChain, 'transport_socket', 'typed_config', 'common_tls_context'];
  const certificate = [...common, 'tls_certificates', 0];
  return [
    { path: [...certificate, 'certificate_chain', 'filename'], value: server.certPath },
    { path: [...certificate, 'private_key', 'filename'], value: server.keyPath },
    { path: [...common, 'validation_context'], value: { trusted_ca: { filename: ca.certPath } } },
    {
      path: [...shipped.connectionManager, 'scheme_header_transformation', 'scheme_to_overwrite'],
      value: 'https',
    },
  ];
}
