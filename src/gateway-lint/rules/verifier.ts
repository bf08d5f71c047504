/** How the gateway reaches the verifier, and who reaches the gateway's own interface. */
import { isLocalAddress, isLoopback } from '../exposure.ts';
import type { Gateway, Rule } from '../gateway.ts';
import { grpcServices, ofKind, viewsOf } from '../settings.ts';
import { isVerified, tlsContextsIn } from '../upstream-tls.ts';
import { plainBackends, unverifiedBackends } from '../verifier-backends.ts';
import { plainDestinations, unverifiedDestinations } from '../verifier-destinations.ts';
import { plainSockets, socketContexts } from '../verifier-envoy-filters.ts';
import { patchedContexts, plainPatches, unverifiedPatches } from '../verifier-json-patches.ts';
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
  const sockets = [
    ...matched.map((match) => match.get('transport_socket')),
    ...(isMatchedAlways(cluster) ? [] : [cluster.get('transport_socket')]),
  ];
  const contexts = sockets.map((socket) => (socket === undefined ? [] : tlsContextsIn(socket)));
  return contexts.some((own) => own.length === 0) ? undefined : contexts.flat();
}

/** Otherwise what has none of the labels gets the cluster's own socket: plain text where there is none. */
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
    ...plainDestinations(gateway),
    ...plainPatches(gateway),
    ...plainSockets(gateway),
  ],
};

function plainGoogle(service: View): readonly View[] {
  const uri = service.get('target_uri');
  const host = uri?.text?.replace(/^(?:dns|ipv4|ipv6):(?:\/\/\/?)?/, '').replace(/:\d+$/, '') ?? '';
  const isLocalTarget = uri?.text?.startsWith('unix:') === true || isLoopback(host);
  const isSafe = isLocalTarget || service.at('channel_credentials', 'ssl_credentials') !== undefined;
  return isSafe ? [] : [uri ?? service];
}

const verifierUnverified: Rule = {
  id: 'verifier-unverified',
  severity: 'error',
  effect: 'asks whoever has some certificate: what they answer says who may pass',
  fix: 'validation_context with trusted_ca and match_typed_subject_alt_names (Envoy Gateway: no insecureSkipVerify; Istio: subjectAltNames)',
  find: (gateway) => [
    ...[
      ...verifierClusters(gateway)
        .filter((cluster) => !isLocal(cluster, gateway))
        .flatMap((cluster) => tlsContexts(cluster) ?? []),
      ...patchedContexts(gateway),
      ...socketContexts(gateway),
    ]
      .filter((context) => !isVerified(context))
      .map((context) => context.get('common_tls_context') ?? context),
    ...unverifiedBackends(gateway),
    ...unverifiedDestinations(gateway),
    ...unverifiedPatches(gateway),
  ],
};

const adminExposed: Rule = {
  id: 'admin-exposed',
  severity: 'error',
  effect: 'lets whoever reaches this interface stop Envoy, switch runtime keys and read its configuration',
  fix: 'admin on 127.0.0.1 or a Unix socket',
  find: ({ admins }) =>
    admins.flatMap((admin) => {
      const address = admin.get('address');
      if (address === undefined || isLocalAddress(address)) return [];
      // A patch of the port alone leaves the address.
      const socket = address.get('socket_address');
      return socket !== undefined && socket.get('address') === undefined ? [] : [address];
    }),
};

const CREDENTIAL = /%REQ\([^)]*(?:authorization|x-proofgate-(?:transcript|signature))\b/i;

const credentialsLogged: Rule = {
  id: 'credentials-logged',
  severity: 'warning',
  effect: 'writes passports or proofs to the log: whoever reads it has them',
  fix: 'no Authorization, x-proofgate-transcript or x-proofgate-signature in access logs',
  find: (gateway) => {
    const { listeners, managers, meshes } = gateway;
    const holders = [
      ...viewsOf(managers),
      ...listeners.map(({ view }) => view),
      ...ofKind(gateway, 'EnvoyProxy').flatMap(({ spec }) => spec.get('telemetry') ?? []),
    ];
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
