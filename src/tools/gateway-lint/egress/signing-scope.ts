/**
 * The parts of a configuration that have to do with signing: an egress Envoy, or Istio's sidecar, also forwards requests that are not
 * signed. The rules for egress read these parts alone.
 */
import { allChains, isCheckFilter } from '../gateway/chains.ts';
import type { Chain, Gateway, HttpFilter, Override } from '../gateway/gateway.ts';
import { ofKind, where } from '../gateway/gateway-queries.ts';
import { mayBe, readHttpFilter, readOverrides } from '../gateway/read-filters.ts';
import { clusterNames } from '../gateway/verifier-locations.ts';
import { everyMapping, type View } from '../gateway/view.ts';

export interface SigningScope extends Gateway {
  /** Those that have requests signed. */
  readonly chains: readonly Chain[];
  /** Filters that EnvoyFilters put behind the signer's. */
  readonly patchedBehind: readonly HttpFilter[];
  /** Hosts for which an EnvoyFilter switches the signer's filter on, as `host:port`. */
  readonly patchedHosts: readonly View[];
  /** The signer's filters that nothing switches on. */
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

/** A sidecar may ask a verifier about what arrives, too. */
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

/** Of a chain's routes: all mappings; where the filter is off by default, those that switch it on, and what is around them. */
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

/** The signer's, and those that signed requests go to; all of them where routes are elsewhere. */
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

/** What EnvoyFilters add to what Istio generates for requests that leave. */
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

/** Names of Istio's virtual hosts end in the port. */
function matchesIstioHost(patch: View): boolean {
  const name = patch.at('match', 'route_configuration', 'vhost', 'name')?.text;
  return name === undefined || /:\d+$/.test(name);
}

function filterOf(patch: View): HttpFilter {
  return readHttpFilter(patch.at('patch', 'value') ?? patch, []);
}

/** Of one EnvoyFilter, in its order: Istio puts each in front of the router, behind those before it. Of others the order is unknown. */
function behindSigner(list: readonly View[]): readonly HttpFilter[] {
  const filters = list.filter((one) => one.get('apply_to')?.isOneOf('HTTP_FILTER'));
  const signer = filters.findIndex((one) => isCheckFilter(filterOf(one)));
  return filters
    .slice(signer + 1)
    .filter((one) => one.at('patch', 'operation')?.isOneOf('INSERT_FIRST') !== true)
    .map(filterOf);
}
