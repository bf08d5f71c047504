/** Queries of rules about a gateway: settings that pass or fail a test, and objects of Kubernetes. */
import type { Gateway, Resource } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import type { View } from './view.ts';

type Test = (setting: View) => boolean;

export const isOn: Test = ({ flag }) => flag === true;
/** Also true for a value that cannot be known, such as a template's text. */
export const mayBeOn: Test = (setting) => mayBe(setting);

/** Each setting that is present and passes the test, if there is one. @param path such as `status_on_error.code` */
export function where(all: readonly View[], path: string, test?: Test): readonly View[] {
  return all.flatMap((view) => {
    const setting = view.at(...path.split('.'));
    return setting !== undefined && (test === undefined || test(setting)) ? [setting] : [];
  });
}

/** Each setting that fails the test; where it is missing, the member that should contain it. */
export function unless(all: readonly View[], path: string, isGood: Test): readonly View[] {
  return all.flatMap((view) => {
    const setting = view.at(...path.split('.'));
    if (setting === undefined) return [deepest(view, path.split('.'))];
    return isGood(setting) ? [] : [setting];
  });
}

/** Where a setting is missing, the member that should contain it. */
export function missing(all: readonly View[], path: string): readonly View[] {
  return all
    .filter((view) => view.at(...path.split('.')) === undefined)
    .map((view) => deepest(view, path.split('.')));
}

function deepest(view: View, [name, ...rest]: readonly string[]): View {
  const next = name === undefined ? undefined : view.get(name);
  return next === undefined ? view : deepest(next, rest);
}

/** Settings of body buffering for the check: of filters, of single routes, of Istio's providers. */
export function bodySettings(gateway: Gateway): readonly View[] {
  return [
    ...where(gateway.checks, 'with_request_body'),
    ...routeSettings(gateway, 'with_request_body'),
    ...where(istioProviders(gateway), 'include_request_body_in_check'),
  ];
}

/** The services that Envoy calls, of filters and of single routes. */
export function grpcServices(gateway: Gateway): readonly View[] {
  return [...where(gateway.checks, 'grpc_service'), ...routeSettings(gateway, 'grpc_service')];
}

/** Settings of the check for single routes. */
export function routeSettings({ overrides }: Gateway, name: string): readonly View[] {
  return overrides.flatMap(({ settings }) => settings.at('check_settings', name) ?? []);
}

/**
 * Whether an `internal_address_config` has only single hosts. Wider ranges may contain callers, and without ranges
 * Envoy uses all private addresses.
 */
export function isSingleHosts(config: View): boolean {
  const ranges = config.list('cidr_ranges');
  return ranges.length > 0 && ranges.every(isSingleHost);
}

function isSingleHost(range: View): boolean {
  const bits = range.get('address_prefix')?.text?.includes(':') === true ? 128 : 32;
  return (range.get('prefix_len')?.number ?? 0) >= bits;
}

export function ofKind({ resources }: Gateway, ...kinds: readonly string[]): readonly Resource[] {
  return resources.filter(({ kind }) => kinds.includes(kind));
}

export function specsOf(gateway: Gateway, ...kinds: readonly string[]): readonly View[] {
  return ofKind(gateway, ...kinds).map(({ spec }) => spec);
}

/** A namespace is undefined if the manifest leaves it to `kubectl`. */
export function isSameNamespace(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

/** Entries of Istio's `extensionProviders` that use an external server, by either protocol. */
export function istioProviders({ meshes }: Gateway): readonly View[] {
  return meshes
    .flatMap((mesh) => mesh.list('extension_providers'))
    .flatMap((one) => one.get('envoy_ext_authz_grpc') ?? one.get('envoy_ext_authz_http') ?? []);
}

/** Istio's policies that use a provider. */
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
