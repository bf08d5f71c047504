/** Which objects of Kubernetes there are, and which of their parts say that requests are checked. */
import type { Gateway, Resource } from './gateway.ts';
import type { View } from './view.ts';

export function ofKind({ resources }: Gateway, ...kinds: readonly string[]): readonly Resource[] {
  return resources.filter(({ kind }) => kinds.includes(kind));
}

export function specsOf(gateway: Gateway, ...kinds: readonly string[]): readonly View[] {
  return ofKind(gateway, ...kinds).map(({ spec }) => spec);
}

/** One is undefined where the manifest leaves it to `kubectl`. */
export function isSameNamespace(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

/** Entries of Istio's `extensionProviders` that ask an external server, by either protocol. */
export function istioProviders({ meshes }: Gateway): readonly View[] {
  return meshes
    .flatMap((mesh) => mesh.list('extension_providers'))
    .flatMap((one) => one.get('envoy_ext_authz_grpc') ?? one.get('envoy_ext_authz_http') ?? []);
}

/** Istio's policies that ask a provider. */
export function customPolicies(gateway: Gateway): readonly Resource[] {
  return ofKind(gateway, 'AuthorizationPolicy').filter(({ spec }) =>
    spec.get('action')?.isOneOf('CUSTOM', 3),
  );
}

/** `extAuth` of Envoy Gateway's policies. */
export function extAuths(gateway: Gateway): readonly View[] {
  return specsOf(gateway, 'SecurityPolicy').flatMap((spec) => spec.get('ext_auth') ?? []);
}

/** Routes of Gateway API that forward requests. */
export const HTTP_ROUTES = ['HTTPRoute', 'GRPCRoute'] as const;

/** Routes of Gateway API that forward bytes, which no HTTP filter sees. */
export const BYTE_ROUTES = ['TCPRoute', 'TLSRoute', 'UDPRoute'] as const;

export function routeRules(gateway: Gateway): readonly View[] {
  return specsOf(gateway, ...HTTP_ROUTES).flatMap((spec) => spec.list('rules'));
}

/** `externalAuth` of Gateway API's routes. */
export function externalAuths(gateway: Gateway): readonly View[] {
  return routeRules(gateway).flatMap((rule) =>
    rule.list('filters').flatMap((filter) => filter.get('external_auth') ?? []),
  );
}
