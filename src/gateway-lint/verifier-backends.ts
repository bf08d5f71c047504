/**
 * Where manifests of Gateway API and Envoy Gateway say that the verifier is, and whether Envoy checks who answers there.
 * Source: Envoy Gateway 1.9, SecurityPolicy `extAuth.grpc`, Backend `tls`; Gateway API, BackendTLSPolicy.
 */
import { isLoopback } from './exposure.ts';
import type { Gateway, Resource } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import { HTTP_ROUTES, isSameNamespace, ofKind } from './resources.ts';
import type { View } from './view.ts';

/** To a Service, or to a Backend of Envoy Gateway. */
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

/** TLS that takes any certificate. */
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

/** A policy is for objects of its own namespace. */
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

/** All of its endpoints are on the gateway's own machine. */
function isHere({ spec }: Resource): boolean {
  const endpoints = spec.list('endpoints');
  return (
    endpoints.length > 0 &&
    endpoints.every((one) => one.get('unix') !== undefined || isLoopback(one.at('ip', 'address')?.text))
  );
}
