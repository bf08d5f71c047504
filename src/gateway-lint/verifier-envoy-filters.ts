/**
 * EnvoyFilters that change the TLS of Istio's clusters, among them the verifier's. Settings of the same socket are merged into it, another
 * socket takes its place. Source: Istio, pilot/pkg/networking/core/envoyfilter/cluster_patch.go, mergeTransportSocketCluster
 * and clusterMatch.
 */
import type { Gateway } from './gateway.ts';
import { customPolicies, ofKind } from './settings.ts';
import { tlsContextsIn } from './upstream-tls.ts';
import { isElsewhere, type Provider, providers } from './verifier-destinations.ts';
import { everyMapping, type View } from './view.ts';

/** Sockets without TLS. */
export function plainSockets(gateway: Gateway): readonly View[] {
  return socketsOf(gateway).filter((socket) => tlsContextsIn(socket).length === 0);
}

/** Contexts of TLS that say whom to trust. Those that are merged and say nothing of it leave it as it is. */
export function socketContexts(gateway: Gateway): readonly View[] {
  return socketsOf(gateway).flatMap((socket) => {
    const keepsTheRest = socket.get('name')?.text === ISTIO_SOCKET;
    return tlsContextsIn(socket).filter((context) => !keepsTheRest || saysWhomToTrust(context));
  });
}

const ISTIO_SOCKET = 'envoy.transport_sockets.tls';

function saysWhomToTrust(context: View): boolean {
  const isWhole = context.at('common_tls_context', 'validation_context') !== undefined;
  return (
    isWhole || everyMapping([context]).some((view) => view.get('trust_chain_verification') !== undefined)
  );
}

function socketsOf(gateway: Gateway): readonly View[] {
  return ofKind(gateway, 'EnvoyFilter')
    .flatMap(({ spec }) => spec.list('config_patches'))
    .filter((entry) => isMerged(entry) && mayBeForVerifier(entry, gateway))
    .flatMap((entry) => {
      const value = entry.at('patch', 'value');
      const matched = value?.list('transport_socket_matches').map((one) => one.get('transport_socket')) ?? [];
      return [value?.get('transport_socket'), ...matched].flatMap((socket) => socket ?? []);
    });
}

function isMerged(entry: View): boolean {
  const operation = entry.at('patch', 'operation');
  return entry.get('apply_to')?.text === 'CLUSTER' && !(operation?.isOneOf('ADD', 'REMOVE') ?? false);
}

/** Without a provider in the file, those for all clusters are. */
function mayBeForVerifier(entry: View, gateway: Gateway): boolean {
  if (entry.at('match', 'context')?.isOneOf('SIDECAR_INBOUND') ?? false) return false;
  const all = providers(gateway);
  if (all.length > 0) return all.some((one) => isElsewhere(one, gateway) && isFor(entry, one));
  const isWide = ['service', 'name'].every((name) => entry.at('match', 'cluster', name) === undefined);
  return isWide && customPolicies(gateway).length > 0;
}

function isFor(entry: View, { host, port }: Provider): boolean {
  const cluster = entry.at('match', 'cluster');
  const said = (name: string) => cluster?.get(name)?.text?.toLowerCase();
  const [service, name, number] = [said('service'), said('name'), said('port_number')];
  // A name counts alone.
  if (name !== undefined) return name.startsWith(`outbound|${port}|`) && name.endsWith(`|${host}`);
  return [undefined, host].includes(service) && [undefined, '0', port].includes(number);
}
