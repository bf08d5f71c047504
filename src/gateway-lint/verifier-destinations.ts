/**
 * What Istio's DestinationRules say of the way to the verifier. A proxy takes the one of its own namespace, of the host's, or of the root
 * namespace, in this order. Source: Istio 1.31, DestinationRule, ServiceEntry; pilot/pkg/model/push_context.go, destinationRule.
 */
import { isLoopback } from './exposure.ts';
import type { Gateway, Resource } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import { isSameNamespace } from './route-coverage.ts';
import { customPolicies, isRootNamespace, surroundingsOf } from './settings.ts';
import type { View } from './view.ts';

/** Whom an entry of `extensionProviders` asks. */
export interface Provider {
  readonly name: string | undefined;
  /** Of the host; undefined where it may be any. */
  readonly namespace: string | undefined;
  readonly host: string;
  readonly port: string | undefined;
}

/** Rules without TLS. */
export function plainDestinations(gateway: Gateway): readonly View[] {
  return tlsSettings(gateway)
    .filter(({ tls }) => !(tls.get('mode')?.isOneOf(...WITH_TLS, 'ISTIO_MUTUAL', 3) ?? false))
    .map(({ tls }) => tls.get('mode') ?? tls);
}

const WITH_TLS = ['SIMPLE', 1, 'MUTUAL', 2] as const;

/** TLS that takes any certificate, or any of an authority's. */
export function unverifiedDestinations(gateway: Gateway): readonly View[] {
  return tlsSettings(gateway)
    .filter(({ tls }) => tls.get('mode')?.isOneOf(...WITH_TLS) ?? false)
    .flatMap(({ entries, tls }) => {
      const skip = tls.get('insecure_skip_verify');
      if (skip !== undefined && mayBe(skip)) return [skip];
      const isNamed = [tls, ...entries].some((one) => one.list('subject_alt_names').length > 0);
      return isNamed ? [] : [tls.get('subject_alt_names') ?? tls.get('mode') ?? tls];
    });
}

/** Of rules for a verifier that is not on the proxy's own machine, with the ServiceEntries of its host. */
function tlsSettings(gateway: Gateway): readonly { readonly tls: View; readonly entries: readonly View[] }[] {
  return providers(gateway).flatMap((provider) => {
    if (!isElsewhere(provider, gateway)) return [];
    const entries = entriesFor(provider, gateway);
    return rulesFor(provider, gateway).flatMap(({ spec }) => {
      const policy = spec.get('traffic_policy');
      const isOwnPort = (one: View) => one.at('port', 'number')?.text === provider.port;
      const ownPort = policy?.list('port_level_settings').find(isOwnPort);
      const tls = (ownPort ?? policy)?.get('tls');
      return tls === undefined ? [] : [{ tls, entries }];
    });
  });
}

export function providers({ meshes }: Gateway): readonly Provider[] {
  return meshes
    .flatMap((mesh) => mesh.list('extension_providers'))
    .flatMap((one) => {
      const service = one.at('envoy_ext_authz_grpc', 'service')?.text;
      if (service === undefined) return [];
      const [host = '', namespace] = service.toLowerCase().split('/').toReversed();
      const port = one.at('envoy_ext_authz_grpc', 'port')?.text;
      return [{ name: one.get('name')?.text, namespace, host, port }];
    });
}

/** Not on the proxy's own machine, as far as the file says. */
export function isElsewhere(provider: Provider, gateway: Gateway): boolean {
  const entries = entriesFor(provider, gateway);
  return entries.length === 0 || !entries.every(isLocal);
}

function entriesFor({ host, namespace }: Provider, gateway: Gateway): readonly View[] {
  return surroundingsOf(gateway, 'ServiceEntry')
    .filter((entry) => isSameNamespace(entry.namespace, namespace))
    .map(({ spec }) => spec)
    .filter((spec) => spec.list('hosts').some(({ text }) => text?.toLowerCase() === host));
}

function isLocal(entry: View): boolean {
  const endpoints = entry.list('endpoints').map((endpoint) => endpoint.get('address')?.text ?? '');
  return endpoints.length > 0 && endpoints.every((address) => /^unix:/.test(address) || isLoopback(address));
}

function rulesFor(provider: Provider, gateway: Gateway): readonly Resource[] {
  const named = surroundingsOf(gateway, 'DestinationRule').filter((rule) => isForHost(rule, provider.host));
  const near = named.filter(
    ({ namespace }) =>
      isSameNamespace(namespace, provider.namespace) || isAskedFrom(namespace, provider, gateway),
  );
  const own = near.length > 0 ? near : named.filter((one) => isRootNamespace(one.namespace, gateway));
  return own.filter((rule) => !own.some((other) => isNearer(other, rule)));
}

/** Proxies of that namespace ask this provider. A selector in the root namespace is taken for one of its own gateways. */
function isAskedFrom(namespace: string | undefined, { name }: Provider, gateway: Gateway): boolean {
  return customPolicies(gateway)
    .filter(({ spec }) => spec.at('provider', 'name')?.text === name)
    .some(
      (policy) =>
        policy.namespace === namespace ||
        (isRootNamespace(policy.namespace, gateway) && policy.spec.get('selector') === undefined),
    );
}

/** As it stands there; a name without points is that of a Service beside the rule. */
function hostOf({ namespace, spec }: Resource): string {
  const host = spec.get('host')?.text?.toLowerCase() ?? '';
  return /[.*]/.test(host) ? host : `${host}.${namespace ?? ''}.svc.cluster.local`;
}

function isForHost(rule: Resource, host: string): boolean {
  const own = hostOf(rule);
  return own.startsWith('*') ? host.endsWith(own.slice(1)) : own === host;
}

/** Of two in one namespace the one that says more of the host counts. */
function isNearer(other: Resource, rule: Resource): boolean {
  const [wide, narrow] = [hostOf(rule), hostOf(other)];
  const isWider = wide.startsWith('*') && (!narrow.startsWith('*') || narrow.length > wide.length);
  return isWider && other.namespace === rule.namespace && other.spec.get('workload_selector') === undefined;
}
