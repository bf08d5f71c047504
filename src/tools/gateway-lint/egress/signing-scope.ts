/**
 * The parts of a configuration that concern signing, because an egress Envoy or Istio's sidecar also forwards unsigned
 * requests. The rules for egress read only these parts.
 */
import { allChains, isCheckFilter } from '../gateway/chains.ts';
import type { Chain, Gateway, HttpFilter, Override } from '../gateway/gateway.ts';
import { ofKind, where } from '../gateway/gateway-queries.ts';
import { mayBe, readHttpFilter, readOverrides } from '../gateway/read-filters.ts';
import { clusterNames } from '../gateway/verifier-locations.ts';
import { everyMapping, type View } from '../gateway/view.ts';

export interface SigningScope extends Gateway {
  /** Chains in which requests are signed. */
  readonly chains: readonly Chain[];
  /** Filters that EnvoyFilters insert after the signer's. */
  readonly patchedBehind: readonly HttpFilter[];
  /** Hosts for which an EnvoyFilter enables the signer's filter, as `host:port`. */
  readonly patchedHosts: readonly View[];
  /** The signer's filters that nothing enables. */
  readonly neverOn: readonly View[];
}

export function signingScope(gateway: Gateway): SigningScope {
  const chains = signingChains(gateway);
  const patched = patchedIn(gateway);
  const routeParts = [
    ...(chains.length === 0 ? gateway.routeParts : chains.flatMap((chain) => signedParts(chain, gateway))),
    ...everyMapping(patched.routeParts),
  ];
  const overrides = readOverrides(routeParts);
  const filters = [...chains.flatMap((chain) => chain.filters.filter(isCheckFilter)), ...patched.signers];
  const checks = filters.flatMap(({ settings }) => settings ?? []);
  const scoped = {
    ...gateway,
    chains,
    managers: chains.map(({ manager }) => manager),
    checks: chains.length === 0 ? [...gateway.checks, ...checks] : checks,
    routeParts,
    overrides,
    patchedBehind: patched.behind,
    patchedHosts: patched.hosts,
    neverOn: filters
      .filter((filter) => isOff(filter) && !overrides.some((one) => switchesOn(one, filter)))
      .map(({ entry }) => entry.get('disabled') ?? entry),
  };
  return { ...scoped, clusters: [...clustersIn(scoped), ...patched.clusters] };
}

/** Excludes a sidecar's chains that use a verifier for incoming requests. */
function signingChains(gateway: Gateway): readonly Chain[] {
  const signs = ({ filters }: Chain) => filters.some(isCheckFilter);
  const leaving = gateway.listeners.filter(({ isOutbound }) => isOutbound);
  const outbound = allChains({ listeners: leaving }).filter(signs);
  return outbound.length > 0 ? outbound : allChains(gateway).filter(signs);
}

const isOff = ({ entry }: HttpFilter): boolean => mayBe(entry.get('disabled'));

function switchesOn({ isDisabled, name, settings }: Override, filter: HttpFilter): boolean {
  return name === filter.name && !isDisabled && !mayBe(settings.get('disabled'));
}

/**
 * All mappings of a chain's routes. If the filter is disabled by default, only those that enable it, and the mappings
 * around them.
 */
function signedParts({ filters, routes }: Chain, { overrides }: Gateway): readonly View[] {
  const signers = filters.filter(isCheckFilter);
  if (!signers.every(isOff)) return everyMapping(routes);
  const on = new Set(
    overrides
      .filter((one) => signers.some((filter) => switchesOn(one, filter)))
      .map(({ owner }) => owner.identity),
  );
  const isOn = (view: View) => on.has(view.identity);
  return routes.flatMap((configuration) => {
    if (isOn(configuration)) return everyMapping([configuration]);
    const hosts = configuration.list('virtual_hosts').flatMap((host) => {
      if (isOn(host)) return everyMapping([host]);
      const own = host.list('routes').filter(isOn);
      return own.length === 0 ? [] : [host, ...everyMapping(own)];
    });
    return hosts.length === 0 ? [] : [configuration, ...hosts];
  });
}

/** The signer's cluster and the clusters of signed requests; all clusters if routes are configured elsewhere. */
function clustersIn(scope: Pick<SigningScope, 'chains' | 'routeParts'> & Gateway): readonly View[] {
  const { chains, clusters, routeParts } = scope;
  if (chains.length === 0 || chains.some(({ routes }) => routes.length === 0)) return clusters;
  const named = routeParts.flatMap((part) => [part.get('cluster') ?? [], part.get('name') ?? []].flat());
  const names = new Set([...clusterNames(scope), ...named].map(({ text }) => text));
  return clusters.filter((cluster) => names.has(cluster.get('name')?.text));
}

interface Patched {
  readonly signers: readonly HttpFilter[];
  readonly behind: readonly HttpFilter[];
  readonly clusters: readonly View[];
  readonly routeParts: readonly View[];
  readonly hosts: readonly View[];
}

/** The parts that EnvoyFilters add to Istio's configuration of outgoing requests. */
function patchedIn(gateway: Gateway): Patched {
  const patches = ofKind(gateway, 'EnvoyFilter')
    .map(({ spec }) => spec.list('config_patches'))
    .map((list) => list.filter((one) => one.at('match', 'context')?.isOneOf(...OUTBOUND) ?? true));
  const ofParts = (...kinds: readonly string[]) =>
    patches.flat().filter((one) => one.get('apply_to')?.isOneOf(...kinds));
  const signers = ofParts('HTTP_FILTER').map(filterOf).filter(isCheckFilter);
  const hosts = ofParts('VIRTUAL_HOST').filter((patch) =>
    readOverrides(valuesOf([patch])).some((one) => signers.some((filter) => switchesOn(one, filter))),
  );
  return {
    signers,
    behind: signers.length === 0 ? [] : patches.flatMap(behindSigner),
    clusters: valuesOf(ofParts('CLUSTER')),
    routeParts: valuesOf(
      ofParts('ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE').filter(matchesIstioHost),
    ),
    hosts: where(hosts, 'match.route_configuration.vhost.name'),
  };
}

const OUTBOUND = ['ANY', 0, 'SIDECAR_OUTBOUND', 2] as const;

function valuesOf(patches: readonly View[]): readonly View[] {
  return patches.flatMap((patch) => patch.at('patch', 'value') ?? []);
}

/** Names of Istio's virtual hosts end with the port. */
function matchesIstioHost(patch: View): boolean {
  const name = patch.at('match', 'route_configuration', 'vhost', 'name')?.text;
  return name === undefined || /:\d+$/.test(name);
}

function filterOf(patch: View): HttpFilter {
  return readHttpFilter(patch.at('patch', 'value') ?? patch, []);
}

/**
 * Filters of one EnvoyFilter are in order, because Istio inserts each before the router and after the previous ones.
 * The order across EnvoyFilters is unknown.
 */
function behindSigner(list: readonly View[]): readonly HttpFilter[] {
  const filters = list.filter((one) => one.get('apply_to')?.isOneOf('HTTP_FILTER'));
  const signer = filters.findIndex((one) => isCheckFilter(filterOf(one)));
  return filters
    .slice(signer + 1)
    .filter((one) => one.at('patch', 'operation')?.isOneOf('INSERT_FIRST') !== true)
    .map(filterOf);
}
