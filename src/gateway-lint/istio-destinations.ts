/**
 * TLS towards the hosts of Istio's providers. Which DestinationRule a proxy takes depends on its namespace, so each for the host is looked at.
 * Source: Istio 1.31, DestinationRule, ServiceEntry.
 */
import { isLoopback } from './exposure.ts';
import type { Gateway, Resource } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import { isSameNamespace, istioProviders, ofKind } from './resources.ts';
import { everyMapping, type View } from './view.ts';

/** Without TLS. */
export function plainDestinations(gateway: Gateway): readonly View[] {
  return tlsSettings(gateway)
    .filter(({ tls }) => !(tls.get('mode')?.isOneOf(...WITH_TLS, 'ISTIO_MUTUAL', 3) ?? false))
    .map(({ tls }) => tls.get('mode') ?? tls);
}

const WITH_TLS = ['SIMPLE', 1, 'MUTUAL', 2] as const;

/** With TLS that takes any certificate, or any of an authority's. */
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
  const hosts = istioProviders(gateway).map((provider) => hostOf(provider));
  return ofKind(gateway, 'DestinationRule').flatMap((rule) =>
    hosts
      .filter((host) => isForHost(rule, host))
      .flatMap((host) => {
        const entries = entriesFor(host, rule.namespace, gateway);
        if (entries.length > 0 && entries.every(isLocal)) return [];
        const policy = rule.spec.get('traffic_policy');
        return everyMapping(policy === undefined ? [] : [policy])
          .flatMap((view) => view.get('tls') ?? [])
          .map((tls) => ({ tls, entries }));
      }),
  );
}

/** Of `namespace/host`, or the host alone. */
function hostOf(provider: View): string {
  return provider.get('service')?.text?.toLowerCase().replace(/^.*\//, '') ?? '';
}

/** Those of a namespace, or all where it has none. */
function entriesFor(host: string, namespace: string | undefined, gateway: Gateway): readonly View[] {
  const all = ofKind(gateway, 'ServiceEntry').filter(({ spec }) =>
    spec.list('hosts').some(({ text }) => text?.toLowerCase() === host),
  );
  const own = all.filter((entry) => isSameNamespace(entry.namespace, namespace));
  return (own.length > 0 ? own : all).map(({ spec }) => spec);
}

function isLocal(entry: View): boolean {
  const endpoints = entry.list('endpoints').map((endpoint) => endpoint.get('address')?.text ?? '');
  return endpoints.length > 0 && endpoints.every((address) => /^unix:/.test(address) || isLoopback(address));
}

/** A name without points is that of a Service beside the rule. */
function isForHost({ namespace, spec }: Resource, host: string): boolean {
  const written = spec.get('host')?.text?.toLowerCase() ?? '';
  const rule = /[.*]/.test(written) ? written : `${written}.${namespace ?? ''}.svc.cluster.local`;
  return rule.startsWith('*') ? host.endsWith(rule.slice(1)) : rule === host;
}
