/**
 * Converts what a control plane made for its Envoys (listeners, routes, clusters and endpoints of a `config_dump`) into a
 * bootstrap of one Envoy on this machine: routes and endpoints inline, certificates from files, addresses on loopback.
 * Everything else stays unchanged.
 */
import type { VerifierAddress } from '../harness/envoy-config.ts';

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
interface JsonObject {
  readonly [name: string]: Json;
}

/** The files that replace a secret. */
export interface SecretFiles {
  readonly certPath?: string;
  readonly keyPath?: string;
  readonly caPath?: string;
}

export interface Placement {
  /** Name of the one that callers reach. */
  readonly listener: string;
  /** Name of one of its filter chains, which alone is kept, for any connection: what a sidecar's mutual TLS and redirection choose. */
  readonly chain?: string;
  /** Addresses on this machine, by cluster name. Other clusters are left out. */
  readonly clusters: { readonly [name: string]: VerifierAddress };
  readonly secrets?: { readonly [name: string]: SecretFiles };
}

/** Filters of Istio's own build of Envoy: telemetry and exchange of peers' names, which change nothing that the API sees. */
const FOREIGN_FILTERS =
  /\bio\.istio\.|stats\.PluginConfig$|\bistio\.envoy\.config\.filter\.http\.alpn\.|\benvoy\.tcp\.metadataexchange\./;

export function staticBootstrap(dump: unknown, placement: Placement): string {
  const byName = namesIn(dump);
  const inline = (value: Json): Json => inlined(value, placement, byName);
  const listener = byName('.listener.v3.Listener', placement.listener);
  const address = { socket_address: { address: '127.0.0.1', port_value: 0 } };
  const clusters = Object.entries(placement.clusters).map(([name, at]) => {
    const found = byName('.cluster.v3.Cluster', name);
    const { cluster_type: _type, eds_cluster_config: _eds, load_assignment, ...cluster } = found;
    if (cluster.type === 'ORIGINAL_DST') return inline(single(cluster, name, at));
    const endpoints = load_assignment ?? byName('.ClusterLoadAssignment', name, 'cluster_name');
    return inline({ ...cluster, type: 'STATIC', load_assignment: placed(endpoints, at) });
  });
  const bootstrap = {
    admin: { address },
    static_resources: { listeners: [inline({ ...chosen(listener, placement), address })], clusters },
  };
  return JSON.stringify(untyped(bootstrap), undefined, 1);
}

/** A cluster's options of its protocol, such as how long a connection lives. */
export function protocolOptionsOf(dump: unknown, cluster: string): Json {
  return namesIn(dump)('.cluster.v3.Cluster', cluster).typed_extension_protocol_options ?? null;
}

function namesIn(dump: unknown): ByName {
  const all = objectsIn(snakeCased(JSON.parse(JSON.stringify(dump))));
  return (suffix, name, member = 'name') => {
    const found = all.find((one) => typeOf(one).endsWith(suffix) && one[member] === name);
    if (found === undefined) throw new Error(`the dump has no ${suffix} ${name}`);
    return found;
  };
}

/** Replaces the destinations of a connection with the single one on this machine. */
function single(
  { lb_policy: _policy, ...cluster }: JsonObject,
  name: string,
  at: VerifierAddress,
): JsonObject {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: placeOf(at) } }] }];
  return { ...cluster, type: 'STATIC', load_assignment: { cluster_name: name, endpoints } };
}

function chosen({ bind_to_port: _bound, ...listener }: JsonObject, { chain }: Placement): JsonObject {
  if (chain === undefined) return listener;
  const chains = Array.isArray(listener.filter_chains) ? listener.filter_chains.filter(isObject) : [];
  const found = chains.find(({ name }) => name === chain);
  if (found === undefined) throw new Error(`the listener has no chain ${chain}`);
  return { name: listener.name ?? null, filter_chains: [{ filters: found.filters ?? [] }] };
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Members as protobuf names them; names that are data have other signs in them, or are no camel case. */
function snakeCased(value: Json): Json {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (!isObject(value)) return value;
  const name = (key: string) =>
    /^[a-z][A-Za-z0-9]*$/.test(key) ? key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : key;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [name(key), snakeCased(one)]));
}

function objectsIn(value: Json): readonly JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn);
  if (!isObject(value)) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}

function typeOf(object: JsonObject): string {
  return String(object['@type'] ?? '').replace(/^.*\//, '');
}

type ByName = (suffix: string, name: string, member?: string) => JsonObject;

/** With routes, certificates and time-outs of this machine in place of what names them elsewhere. */
function inlined(value: Json, placement: Placement, byName: ByName): Json {
  if (Array.isArray(value)) {
    return value
      .filter((one) => !(isObject(one) && isForeign(one)))
      .map((one) => inlined(one, placement, byName));
  }
  if (!isObject(value)) return value;
  const { rds, ...rest } = value;
  if (isObject(rds)) {
    const routes = byName('.RouteConfiguration', String(rds.route_config_name));
    return inlined({ ...rest, route_config: reachable(routes, placement) }, placement, byName);
  }
  const here = { ...value, ...secretsOf(value, placement), ...localOf(value) };
  return Object.fromEntries(
    Object.entries(here)
      .filter(([name]) => !/_sds_secret_configs?$|^combined_validation_context$/.test(name))
      .map(([name, one]) => [name, inlined(one, placement, byName)]),
  );
}

function isForeign({ typed_config }: JsonObject): boolean {
  return (
    isObject(typed_config) && FOREIGN_FILTERS.test(String(typed_config.type_url ?? typeOf(typed_config)))
  );
}

/** Hosts of others are left out with their clusters. */
function reachable(routes: JsonObject, { clusters }: Placement): JsonObject {
  const hosts = Array.isArray(routes.virtual_hosts) ? routes.virtual_hosts : [];
  const isHere = (host: Json) =>
    objectsIn(host).every(({ cluster }) => typeof cluster !== 'string' || cluster in clusters);
  return { ...routes, virtual_hosts: hosts.filter(isHere) };
}

function secretsOf(context: JsonObject, { secrets = {} }: Placement): JsonObject {
  const certificates = context.tls_certificate_sds_secret_configs;
  const combined = context.combined_validation_context;
  const validation = isObject(combined)
    ? combined.validation_context_sds_secret_config
    : context.validation_context_sds_secret_config;
  const filesOf = (name: Json | undefined): SecretFiles => {
    const files = secrets[String(name)];
    if (files === undefined) throw new Error(`nothing stands for the secret ${String(name)}`);
    return files;
  };
  const own = Array.isArray(certificates) ? certificates.filter(isObject) : [];
  return {
    ...(own.length > 0 && {
      tls_certificates: own.map(({ name }) => {
        const { certPath = '', keyPath = '' } = filesOf(name);
        return { certificate_chain: { filename: certPath }, private_key: { filename: keyPath } };
      }),
    }),
    ...(isObject(validation) && {
      validation_context: {
        ...(isObject(combined) && isObject(combined.default_validation_context)
          ? combined.default_validation_context
          : {}),
        trusted_ca: { filename: filesOf(validation.name).caPath ?? '' },
      },
    }),
  };
}

/**
 * On a machine that is busy testing a verifier may be later than the half second that it has in service; and standard output, which is no
 * file here, cannot be opened as one for the access log.
 */
function localOf(value: JsonObject): JsonObject {
  return {
    ...('envoy_grpc' in value && 'timeout' in value && { timeout: '8s' }),
    ...('connect_timeout' in value && { connect_timeout: '8s' }),
    ...(value.path === '/dev/stdout' && { path: '/dev/null' }),
  };
}

function placed(assignment: Json, at: VerifierAddress): Json {
  if (Array.isArray(assignment)) return assignment.map((one) => placed(one, at));
  if (!isObject(assignment)) return assignment;
  return Object.fromEntries(
    Object.entries(assignment).map(([name, one]) => [
      name,
      name === 'address' ? placeOf(at) : placed(one, at),
    ]),
  );
}

function placeOf(at: VerifierAddress): Json {
  return at.kind === 'unix'
    ? { pipe: { path: at.path } }
    : { socket_address: { address: at.host, port_value: at.port } };
}

/** A dump states the type of each resource; a bootstrap does not need it. */
function untyped(bootstrap: Json): Json {
  const isResource = (value: JsonObject) =>
    /\.(?:Listener|RouteConfiguration|Cluster|ClusterLoadAssignment)$/.test(typeOf(value));
  if (Array.isArray(bootstrap)) return bootstrap.map(untyped);
  if (!isObject(bootstrap)) return bootstrap;
  const members = Object.entries(bootstrap).filter(([name]) => name !== '@type' || !isResource(bootstrap));
  return Object.fromEntries(members.map(([name, one]) => [name, untyped(one)]));
}
