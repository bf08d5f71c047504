/** Whether callers can reach a listener, and whether it forwards to any endpoint. */
import { isIstioStatistics } from './istio-condition.ts';
import { mayBe, typed } from './read-filters.ts';
import type { View } from './view.ts';

/** Parts of the same document. */
interface Surroundings {
  readonly listeners: readonly View[];
  readonly clusters: readonly View[];
}

/**
 * Whether a listener is for requests of the workload beside it. Istio's sidecars mark such listeners as `OUTBOUND`; its gateways mark all
 * listeners so, and have no inbound one. Envoy ignores the mark, so callers must be unable to reach the listener as well.
 */
export function isForWorkloads(listener: View, { clusters, listeners }: Surroundings): boolean {
  const isOutOfReach = (one: View) =>
    isOutbound(one) && (isUnbound(one) || isLocal(one) || refusesDirect(one, clusters));
  // A listener without a port gets connections from one that has a port.
  const handing = isUnbound(listener) ? listeners.filter((one) => mayBe(one.get('use_original_dst'))) : [];
  return (
    listeners.some((one) => one.get('traffic_direction')?.isOneOf('INBOUND', 1) === true) &&
    isOutOfReach(listener) &&
    handing.every(isOutOfReach)
  );
}

function isOutbound(listener: View): boolean {
  return listener.get('traffic_direction')?.isOneOf('OUTBOUND', 2) === true;
}

function isUnbound(listener: View): boolean {
  return listener.get('bind_to_port')?.flag === false;
}

/** Whether all of its addresses are local. */
function isLocal(listener: View): boolean {
  const more = listener.list('additional_addresses').map((one) => one.get('address'));
  return [listener.get('address'), ...more].every(
    (address) => address !== undefined && isLocalAddress(address),
  );
}

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/;

export function isLocalAddress(address: View): boolean {
  if (address.at('pipe', 'path') !== undefined) return true;
  return isLoopback(address.at('socket_address', 'address')?.text);
}

export function isLoopback(host: string | undefined): boolean {
  return LOOPBACK.test(host ?? '');
}

/** Whether it accepts only redirected connections; those to its own port end at a cluster without endpoints. */
function refusesDirect(listener: View, clusters: readonly View[]): boolean {
  const port = listener.at('address', 'socket_address', 'port_value')?.text;
  const early = listener.list('listener_filters');
  const own = listener.list('filter_chains').filter((chain) => {
    const wanted = chain.get('filter_chain_match')?.members() ?? [];
    return wanted.length === 1 && chain.at('filter_chain_match', 'destination_port')?.text === port;
  });
  return (
    listener.get('use_original_dst')?.flag === true &&
    listener.list('additional_addresses').length === 0 &&
    listener.get('filter_chain_matcher') === undefined &&
    own.length > 0 &&
    own.every((chain) => {
      const filters = chain.list('filters');
      const [last] = filters.slice(-1);
      return last !== undefined && isBlackHole(last, [...early, ...filters.slice(0, -1)], clusters);
    })
  );
}

/** Types of filters that do not select the cluster of the tcp_proxy after them. */
const PASSIVE = /\.listener\.(?:original_dst|tls_inspector|http_inspector)\.v\w+\.\w+$/;

/** Whether it forwards to a cluster of the file without endpoints, such as Istio's BlackHoleCluster. */
export function isBlackHole(proxy: View, before: readonly View[], clusters: readonly View[]): boolean {
  const message = typed(proxy.get('typed_config'));
  const name = message?.settings.get('cluster')?.text;
  const named = clusters.filter((one) => name !== undefined && one.get('name')?.text === name);
  return (
    /\.TcpProxy$/.test(message?.type ?? '') &&
    named.length > 0 &&
    named.every(isEmpty) &&
    before.every((filter) => {
      const type = typed(filter.get('typed_config'))?.type ?? '';
      return PASSIVE.test(type) || isIstioStatistics(type);
    })
  );
}

function isEmpty(cluster: View): boolean {
  return (
    (cluster.get('type')?.isOneOf('STATIC', 0) ?? true) &&
    cluster.get('cluster_type') === undefined &&
    (cluster.at('load_assignment', 'endpoints')?.items() ?? []).length === 0
  );
}
