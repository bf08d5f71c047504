/** Clusters that Envoy sends Checks to, and their TLS. Source: Envoy, extensions.transport_sockets.tls.v3.UpstreamTlsContext. */
import { isLocalAddress } from './exposure.ts';
import { grpcServices } from './filter-settings.ts';
import type { Gateway } from './gateway.ts';
import { typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

export function clusterNames(gateway: Gateway): readonly View[] {
  return grpcServices(gateway).flatMap((service) => service.at('envoy_grpc', 'cluster_name') ?? []);
}

/** Those with an address that is on another machine, or unknown. */
export function remoteClusters(gateway: Gateway): readonly View[] {
  const names = new Set(clusterNames(gateway).map(({ text }) => text));
  return gateway.clusters
    .filter((cluster) => names.has(cluster.get('name')?.text))
    .filter((cluster) => !isLocal(cluster, gateway));
}

function isLocal(cluster: View, { endpoints }: Gateway): boolean {
  const name = cluster.at('eds_cluster_config', 'service_name')?.text ?? cluster.get('name')?.text;
  const elsewhere = endpoints.filter((one) => one.get('cluster_name')?.text === name);
  const assignments = [cluster.get('load_assignment') ?? [], elsewhere].flat();
  const addresses = everyMapping(assignments.length === 0 ? [cluster] : assignments).flatMap(
    (view) => view.get('address') ?? [],
  );
  const outer = addresses.filter((address) => address.isMapping);
  return outer.length > 0 && outer.every(isLocalAddress);
}

/** TLS settings of its sockets, also within other sockets; undefined where one of the sockets has no TLS. */
export function tlsContexts(cluster: View): readonly View[] | undefined {
  const matched = cluster.list('transport_socket_matches').map((match) => match.get('transport_socket'));
  const sockets = isMatchedAlways(cluster) ? matched : [...matched, cluster.get('transport_socket')];
  const contexts = sockets.map((socket) =>
    everyMapping(socket === undefined ? [] : [socket]).flatMap(contextIn),
  );
  return contexts.some((own) => own.length === 0) ? undefined : contexts.flat();
}

/** Endpoints without the labels get the cluster's own socket, which is plain text where there is none. */
function isMatchedAlways(cluster: View): boolean {
  const wanted = cluster.list('transport_socket_matches').map((match) => match.get('match')?.members() ?? []);
  const endpoints = cluster
    .at('load_assignment', 'endpoints')
    ?.items()
    .flatMap((locality) => locality.list('lb_endpoints'))
    .map((one) => one.at('metadata', 'filter_metadata')?.named('envoy.transport_socket_match'));
  const isMatched = (own: View | undefined) =>
    wanted.some((labels) => labels.every(({ name, view }) => own?.named(name)?.text === view.text));
  return endpoints === undefined || endpoints.length === 0
    ? isMatched(undefined)
    : endpoints.every(isMatched);
}

function contextIn(view: View): readonly View[] {
  const message = typed(view);
  return message !== undefined && /\.UpstreamTlsContext$/.test(message.type) ? [message.settings] : [];
}

/** What comes from a secret is not in the file and counts as right. */
export function isVerified(context: View): boolean {
  const common = context.get('common_tls_context');
  if (common?.get('validation_context_sds_secret_config') !== undefined) return true;
  const combined = common?.get('combined_validation_context');
  const validation = combined?.get('default_validation_context') ?? common?.get('validation_context');
  const has = (...names: readonly string[]) => names.some((name) => validation?.get(name) !== undefined);
  const hasAuthority =
    combined?.get('validation_context_sds_secret_config') !== undefined ||
    has('trusted_ca', 'system_root_certs', 'ca_certificate_provider_instance');
  const isPinned = has('verify_certificate_spki', 'verify_certificate_hash');
  const names = ['match_typed_subject_alt_names', 'match_subject_alt_names'];
  const hasName =
    names.some((name) => (validation?.list(name).length ?? 0) > 0) ||
    context.get('auto_sni_san_validation')?.flag === true;
  const acceptsAny = validation?.get('trust_chain_verification')?.isOneOf('ACCEPT_UNTRUSTED', 1) ?? false;
  return isPinned || (hasAuthority && hasName && !acceptsAny);
}
