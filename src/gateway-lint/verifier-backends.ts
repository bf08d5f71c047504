/**
 * Where manifests of Gateway API and Envoy Gateway say that the verifier is, and whether it is asked over TLS that is checked.
 * Source: Envoy Gateway 1.9, SecurityPolicy `extAuth.grpc`, Backend `tls`; Gateway API, BackendTLSPolicy.
 */
import { isLoopback } from './exposure.ts';
import type { Gateway, Resource } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import { isSameNamespace } from './route-coverage.ts';
import { httpRoutes, ofKind } from './settings.ts';
import type { View } from './view.ts';

/** To a Service, or to a Backend of Envoy Gateway. */
interface Reference {
  readonly view: View;
  readonly kind: string;
  readonly name: string | undefined;
  /** Its own, or that of the object that it stands in. */
  readonly namespace: string | undefined;
}

/** Those with neither TLS nor a verifier on the same machine. */
export function plainBackends(gateway: Gateway): readonly View[] {
  return references(gateway)
    .filter((reference) => !hasPolicy(reference, gateway) && !isSafe(reference, gateway))
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
    // The one that is deprecated counts too.
    return [service?.get('backend_ref') ?? [], service?.list('backend_refs') ?? []]
      .flat()
      .map((view) => referenceIn(owner, view));
  });
  const routes = httpRoutes(gateway).flatMap((owner) =>
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

/** A policy is for what is in its own namespace. */
function hasPolicy(reference: Reference, gateway: Gateway): boolean {
  return ofKind(gateway, 'BackendTLSPolicy')
    .filter(({ namespace }) => isSameNamespace(namespace, reference.namespace))
    .flatMap(({ spec }) => spec.list('target_refs'))
    .some(
      (target) =>
        target.get('name')?.text === reference.name &&
        (target.get('kind')?.text ?? 'Service') === reference.kind,
    );
}

function backendsOf({ kind, name, namespace }: Reference, gateway: Gateway): readonly Resource[] {
  if (kind !== 'Backend') return [];
  return ofKind(gateway, 'Backend').filter(
    (one) => one.name === name && isSameNamespace(one.namespace, namespace),
  );
}

/** A Backend may be a Unix socket, and may have TLS of its own. */
function isSafe(reference: Reference, gateway: Gateway): boolean {
  const backends = backendsOf(reference, gateway);
  return backends.length > 0 && backends.every((one) => isHere(one) || one.spec.get('tls') !== undefined);
}

function isHere({ spec }: Resource): boolean {
  const endpoints = spec.list('endpoints');
  return (
    endpoints.length > 0 &&
    endpoints.every(
      (endpoint) => endpoint.get('unix') !== undefined || isLoopback(endpoint.at('ip', 'address')?.text),
    )
  );
}
