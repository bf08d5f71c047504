/** TLS towards clusters. Source: Envoy, extensions.transport_sockets.tls.v3.UpstreamTlsContext. */
import { typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

/** Settings of TLS anywhere within, also of a socket that is within another. */
export function tlsContextsIn(root: View): readonly View[] {
  return everyMapping([root]).flatMap((view) => {
    const message = typed(view);
    return message !== undefined && /\.UpstreamTlsContext$/.test(message.type) ? [message.settings] : [];
  });
}

/** What comes from a secret is not in the file: it is taken for right. */
export function isVerified(context: View): boolean {
  const common = context.get('common_tls_context');
  if (common?.get('validation_context_sds_secret_config') !== undefined) return true;
  const combined = common?.get('combined_validation_context');
  const validation = combined?.get('default_validation_context') ?? common?.get('validation_context');
  const hasAuthority =
    combined?.get('validation_context_sds_secret_config') !== undefined ||
    ['trusted_ca', 'system_root_certs', 'ca_certificate_provider_instance'].some((name) =>
      validation?.get(name),
    );
  const isPinned = ['verify_certificate_spki', 'verify_certificate_hash'].some((name) =>
    validation?.get(name),
  );
  const names = ['match_typed_subject_alt_names', 'match_subject_alt_names'];
  const hasName =
    names.some((name) => (validation?.list(name).length ?? 0) > 0) ||
    context.get('auto_sni_san_validation')?.flag === true;
  const acceptsAny = validation?.get('trust_chain_verification')?.isOneOf('ACCEPT_UNTRUSTED', 1) ?? false;
  return isPinned || (hasAuthority && hasName && !acceptsAny);
}
