/** How the gateway reaches the verifier, and who reaches the gateway's own interface. */
import { isLocalAddress, isLoopback } from '../exposure.ts';
import type { Gateway, Rule } from '../gateway.ts';
import { typed } from '../read-filters.ts';
import { extAuths, externalAuths, grpcServices, ofKind, viewsOf } from '../settings.ts';
import { everyMapping, type View } from '../view.ts';

/** Clusters that Checks are sent to. */
function verifierClusters(gateway: Gateway): readonly View[] {
  const names = new Set(clusterNames(gateway).map(({ text }) => text));
  return gateway.clusters.filter((cluster) => names.has(cluster.get('name')?.text));
}

function clusterNames(gateway: Gateway): readonly View[] {
  return viewsOf(grpcServices(gateway)).flatMap((service) => service.at('envoy_grpc', 'cluster_name') ?? []);
}

/** Every address of it is on this machine; none that is unknown. */
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

/** Contexts of TLS in its sockets, also within others; undefined where one of the sockets has none. */
function tlsContexts(cluster: View): readonly View[] | undefined {
  const matched = cluster.list('transport_socket_matches');
  const sockets =
    matched.length > 0
      ? matched.map((match) => match.get('transport_socket'))
      : [cluster.get('transport_socket')];
  const contexts = sockets.map((socket) =>
    everyMapping(socket === undefined ? [] : [socket])
      .flatMap((view) => typed(view) ?? [])
      .find(({ type }) => /\.UpstreamTlsContext$/.test(type)),
  );
  return contexts.every((context) => context !== undefined)
    ? contexts.flatMap((context) => context?.settings ?? [])
    : undefined;
}

const verifierPlaintext: Rule = {
  id: 'verifier-plaintext',
  severity: 'error',
  effect: 'sends passports in the clear to a verifier elsewhere, and believes whoever answers',
  fix: 'a Unix socket, loopback, or TLS with certificates on both sides (Gateway API: BackendTLSPolicy)',
  find: (gateway) => [
    ...verifierClusters(gateway)
      .filter((cluster) => !isLocal(cluster, gateway) && tlsContexts(cluster) === undefined)
      .map((cluster) => cluster.get('load_assignment') ?? cluster),
    ...viewsOf(grpcServices(gateway))
      .flatMap((service) => service.get('google_grpc') ?? [])
      .flatMap(plainGoogle),
    ...plainBackends(gateway),
  ],
};

function plainGoogle(service: View): readonly View[] {
  const uri = service.get('target_uri');
  const host = uri?.text?.replace(/^(?:dns|ipv4|ipv6):(?:\/\/\/?)?/, '').replace(/:\d+$/, '') ?? '';
  const isLocalTarget = uri?.text?.startsWith('unix:') === true || isLoopback(host);
  const isSafe = isLocalTarget || service.at('channel_credentials', 'ssl_credentials') !== undefined;
  return isSafe ? [] : [uri ?? service];
}

/** Services that no BackendTLSPolicy of the file is for. */
function plainBackends(gateway: Gateway): readonly View[] {
  const policies = ofKind(gateway, 'BackendTLSPolicy');
  const secured = new Set(
    policies.flatMap(({ spec }) => spec.list('target_refs').map((target) => target.get('name')?.text)),
  );
  const backends = [
    ...extAuths(gateway).flatMap((auth) => auth.get('grpc')?.list('backend_refs') ?? []),
    ...externalAuths(gateway).flatMap((auth) => auth.get('backend_ref') ?? []),
  ];
  return backends.filter(
    (backend) => !secured.has(backend.get('name')?.text) && !isLocalBackend(backend, gateway),
  );
}

/** A `Backend` of Envoy Gateway may be a Unix socket, and may have TLS of its own. */
function isLocalBackend(reference: View, gateway: Gateway): boolean {
  const name = reference.get('name')?.text;
  const backend = ofKind(gateway, 'Backend').find((one) => one.name === name)?.spec;
  if (backend === undefined || reference.get('kind')?.text !== 'Backend') return false;
  const endpoints = backend.list('endpoints');
  const isHere = (endpoint: View) =>
    endpoint.get('unix') !== undefined || isLoopback(endpoint.at('ip', 'address')?.text);
  return backend.get('tls') !== undefined || (endpoints.length > 0 && endpoints.every(isHere));
}

const verifierUnverified: Rule = {
  id: 'verifier-unverified',
  severity: 'error',
  effect: 'asks whoever has some certificate: what they answer says who may pass',
  fix: 'validation_context with trusted_ca and match_typed_subject_alt_names',
  find: (gateway) =>
    verifierClusters(gateway)
      .filter((cluster) => !isLocal(cluster, gateway))
      .flatMap((cluster) => tlsContexts(cluster) ?? [])
      .filter((context) => !isVerified(context))
      .map((context) => context.get('common_tls_context') ?? context),
};

/** What comes from a secret is not in the file: it is taken for right. */
function isVerified(context: View): boolean {
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

const adminExposed: Rule = {
  id: 'admin-exposed',
  severity: 'error',
  effect: 'lets whoever reaches this interface stop Envoy, switch runtime keys and read its configuration',
  fix: 'admin on 127.0.0.1 or a Unix socket',
  find: ({ admins }) =>
    admins.flatMap((admin) => {
      const address = admin.get('address');
      return address === undefined || isLocalAddress(address) ? [] : [address];
    }),
};

const CREDENTIAL = /%REQ\([^)]*(?:authorization|x-proofgate-(?:transcript|signature))\b/i;

const credentialsLogged: Rule = {
  id: 'credentials-logged',
  severity: 'warning',
  effect: 'writes passports or proofs to the log: whoever reads it has them',
  fix: 'no Authorization, x-proofgate-transcript or x-proofgate-signature in access logs',
  find: ({ listeners, managers, meshes }) => {
    const holders = [...viewsOf(managers), ...listeners.map(({ view }) => view)];
    const logs = holders.flatMap((holder) => holder.get('access_log') ?? []);
    const texts = everyMapping(logs.flatMap((log) => [log, ...log.items()]))
      .flatMap((view) => view.members())
      .map(({ view }) => view);
    return [...texts, ...meshes.flatMap((mesh) => mesh.get('access_log_format') ?? [])].filter(({ text }) =>
      CREDENTIAL.test(text ?? ''),
    );
  },
};

const notInFile: Rule = {
  id: 'not-in-file',
  severity: 'warning',
  effect: 'names configuration that is fetched from elsewhere, so nothing can be said of it',
  fix: "lint what the running Envoy has: its admin interface's /config_dump",
  find: (gateway) => {
    const known = new Set(gateway.clusters.map((cluster) => cluster.get('name')?.text));
    const missing = gateway.listeners.length === 0 ? [] : clusterNames(gateway);
    return [...gateway.unseen, ...missing.filter(({ text }) => !known.has(text))];
  },
};

export const VERIFIER_RULES: readonly Rule[] = [
  verifierPlaintext,
  verifierUnverified,
  adminExposed,
  credentialsLogged,
  notInFile,
];
