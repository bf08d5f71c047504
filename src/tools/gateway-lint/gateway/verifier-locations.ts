/**
 * The verifier's location in a configuration, and whether the gateway authenticates it: Envoy's clusters, backends of
 * Gateway API and Envoy Gateway, and hosts of Istio's providers. Source: Envoy,
 * extensions.transport_sockets.tls.v3.UpstreamTlsContext; Envoy Gateway 1.9, SecurityPolicy `extAuth.grpc`, Backend
 * `tls`; Gateway API, BackendTLSPolicy; Istio 1.31, DestinationRule, ServiceEntry.
 */
import { isLocalAddress, isLoopback } from './exposure.ts';
import type { Gateway, Resource } from './gateway.ts';
import { grpcServices, HTTP_ROUTES, isSameNamespace, istioProviders, ofKind } from './gateway-queries.ts';
import { mayBe, typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

export function clusterNames(gateway: Gateway): readonly View[] {
  return [
    ...grpcServices(gateway).flatMap((service) => service.at('envoy_grpc', 'cluster_name') ?? []),
    ...gateway.checks.flatMap((check) => check.at('http_service', 'server_uri', 'cluster') ?? []),
  ];
}

/** Clusters with an address that is on another machine, or unknown. */
export function remoteClusters(gateway: Gateway): readonly View[] {
  const names = new Set(clusterNames(gateway).map(({ text }) => text));
  return gateway.clusters
    .filter((cluster) => names.has(cluster.get('name')?.text))
    .filter((cluster) => !isLocalCluster(cluster, gateway));
}

export function isLocalCluster(cluster: View, { endpoints }: Gateway): boolean {
  const name = cluster.at('eds_cluster_config', 'service_name')?.text ?? cluster.get('name')?.text;
  const elsewhere = endpoints.filter((one) => one.get('cluster_name')?.text === name);
  const assignments = [cluster.get('load_assignment') ?? [], elsewhere].flat();
  const addresses = everyMapping(assignments.length === 0 ? [cluster] : assignments).flatMap(
    (view) => view.get('address') ?? [],
  );
  const outer = addresses.filter((address) => address.isMapping);
  return outer.length > 0 && outer.every(isLocalAddress);
}

/** TLS settings of its sockets, also within other sockets; undefined if one of the sockets has no TLS. */
export function tlsContexts(cluster: View): readonly View[] | undefined {
  const matched = cluster.list('transport_socket_matches').map((match) => match.get('transport_socket'));
  const sockets = isMatchedAlways(cluster) ? matched : [...matched, cluster.get('transport_socket')];
  const contexts = sockets.map((socket) =>
    everyMapping(socket === undefined ? [] : [socket]).flatMap(contextIn),
  );
  return contexts.some((own) => own.length === 0) ? undefined : contexts.flat();
}

/** Endpoints without the labels use the cluster's own socket, which is plain text if there is none. */
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

/** Values from a secret are not in the file and count as correct. */
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

/** Reference to a Service, or to a Backend of Envoy Gateway. */
interface Reference {
  readonly view: View;
  readonly kind: string;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
}

/** References to a verifier on another machine, without TLS. */
export function plainBackends(gateway: Gateway): readonly View[] {
  return references(gateway)
    .filter((reference) => {
      const backends = backendsOf(reference, gateway);
      const isSafe = backends.every((one) => isHere(one) || one.spec.get('tls') !== undefined);
      return !hasPolicy(reference, gateway) && !(backends.length > 0 && isSafe);
    })
    .map(({ view }) => view);
}

/** References with TLS that accepts any certificate. */
export function unverifiedBackends(gateway: Gateway): readonly View[] {
  return references(gateway)
    .flatMap((reference) => backendsOf(reference, gateway))
    .filter((backend) => !isHere(backend))
    .flatMap(({ spec }) => spec.at('tls', 'insecure_skip_verify') ?? [])
    .filter(mayBe);
}

function references(gateway: Gateway): readonly Reference[] {
  const policies = ofKind(gateway, 'SecurityPolicy').flatMap((owner) => {
    const service = owner.spec.at('ext_auth', 'grpc');
    // `backendRef` is deprecated, and still counts.
    const views = [service?.get('backend_ref') ?? [], service?.list('backend_refs') ?? []].flat();
    return views.map((view) => referenceIn(owner, view));
  });
  const routes = ofKind(gateway, ...HTTP_ROUTES).flatMap((owner) =>
    owner.spec
      .list('rules')
      .flatMap((rule) => rule.list('filters'))
      .flatMap((filter) => filter.at('external_auth', 'backend_ref') ?? [])
      .map((view) => referenceIn(owner, view)),
  );
  return [...policies, ...routes];
}

function referenceIn({ namespace }: Resource, view: View): Reference {
  return {
    view,
    kind: view.get('kind')?.text ?? 'Service',
    name: view.get('name')?.text,
    namespace: view.get('namespace')?.text ?? namespace,
  };
}

/** A policy applies to objects of its own namespace. */
function hasPolicy({ kind, name, namespace }: Reference, gateway: Gateway): boolean {
  return ofKind(gateway, 'BackendTLSPolicy')
    .filter((policy) => isSameNamespace(policy.namespace, namespace))
    .flatMap(({ spec }) => spec.list('target_refs'))
    .some((target) => target.get('name')?.text === name && (target.get('kind')?.text ?? 'Service') === kind);
}

function backendsOf({ kind, name, namespace }: Reference, gateway: Gateway): readonly Resource[] {
  return ofKind(gateway, 'Backend').filter(
    (one) => kind === 'Backend' && one.name === name && isSameNamespace(one.namespace, namespace),
  );
}

/** Whether all of its endpoints are on the gateway's own machine. */
function isHere({ spec }: Resource): boolean {
  const endpoints = spec.list('endpoints');
  return (
    endpoints.length > 0 &&
    endpoints.every((one) => one.get('unix') !== undefined || isLoopback(one.at('ip', 'address')?.text))
  );
}

/**
 * Settings without TLS. The DestinationRule that a proxy uses depends on its namespace, so each one for the host counts.
 * @param hosts of the verifier by default
 */
export function plainDestinations(gateway: Gateway, hosts = providerHosts(gateway)): readonly View[] {
  return tlsSettings(gateway, hosts)
    .filter(({ tls }) => !(tls.get('mode')?.isOneOf(...WITH_TLS, 'ISTIO_MUTUAL', 3) ?? false))
    .map(({ tls }) => tls.get('mode') ?? tls);
}

const WITH_TLS = ['SIMPLE', 1, 'MUTUAL', 2] as const;

/** Whether a DestinationRule for the host has settings of TLS. */
export function hasTlsDestination(gateway: Gateway, host: string): boolean {
  return tlsSettings(gateway, [host]).length > 0;
}

/** Settings with TLS that accepts any certificate, or any certificate of an authority. */
export function unverifiedDestinations(gateway: Gateway, hosts = providerHosts(gateway)): readonly View[] {
  return tlsSettings(gateway, hosts)
    .filter(({ tls }) => tls.get('mode')?.isOneOf(...WITH_TLS) ?? false)
    .flatMap(({ entries, tls }) => {
      const skip = tls.get('insecure_skip_verify');
      if (skip !== undefined && mayBe(skip)) return [skip];
      const isNamed = [tls, ...entries].some((one) => one.list('subject_alt_names').length > 0);
      return isNamed ? [] : [tls.get('subject_alt_names') ?? tls.get('mode') ?? tls];
    });
}

/** DestinationRules for hosts that are not on the proxy's own machine, with the ServiceEntries of each host. */
function tlsSettings(
  gateway: Gateway,
  hosts: readonly string[],
): readonly { readonly tls: View; readonly entries: readonly View[] }[] {
  return ofKind(gateway, 'DestinationRule').flatMap((rule) =>
    hosts
      .filter((host) => isForHost(rule, host))
      .flatMap((host) => {
        const entries = entriesFor(host, rule.namespace, gateway);
        if (entries.length > 0 && entries.every(isLocalEntry)) return [];
        const policy = rule.spec.get('traffic_policy');
        return everyMapping(policy === undefined ? [] : [policy])
          .flatMap((view) => view.get('tls') ?? [])
          .map((tls) => ({ tls, entries }));
      }),
  );
}

function providerHosts(gateway: Gateway): readonly string[] {
  return istioProviders(gateway).map(hostOf);
}

/** The host in `namespace/host` or `host`. */
function hostOf(provider: View): string {
  return provider.get('service')?.text?.toLowerCase().replace(/^.*\//, '') ?? '';
}

/** ServiceEntries of a namespace, or all without a namespace. */
function entriesFor(host: string, namespace: string | undefined, gateway: Gateway): readonly View[] {
  const all = ofKind(gateway, 'ServiceEntry').filter(({ spec }) =>
    spec.list('hosts').some(({ text }) => text?.toLowerCase() === host),
  );
  const own = all.filter((entry) => isSameNamespace(entry.namespace, namespace));
  return (own.length > 0 ? own : all).map(({ spec }) => spec);
}

function isLocalEntry(entry: View): boolean {
  const endpoints = entry.list('endpoints').map((endpoint) => endpoint.get('address')?.text ?? '');
  return endpoints.length > 0 && endpoints.every((address) => /^unix:/.test(address) || isLoopback(address));
}

/** A name without dots is that of a Service in the rule's namespace. */
function isForHost({ namespace, spec }: Resource, host: string): boolean {
  const written = spec.get('host')?.text?.toLowerCase() ?? '';
  const rule = /[.*]/.test(written) ? written : `${written}.${namespace ?? ''}.svc.cluster.local`;
  return rule.startsWith('*') ? host.endsWith(rule.slice(1)) : rule === host;
}
