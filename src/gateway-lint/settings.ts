/** What rules say of settings: that one must not be so, or that one must be. */
import type { Gateway, Resource, Settings } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import type { View } from './view.ts';

type Test = (setting: View) => boolean;

export const isOn: Test = (setting) => setting.flag === true;
/** Also for what cannot be known, such as a template's text. */
export const mayBeOn: Test = (setting) => mayBe(setting);

/** Each that is there and passes the test. */
export function where(all: readonly View[], names: readonly string[], isBad: Test): readonly View[] {
  return all.flatMap((view) => {
    const setting = view.at(...names);
    return setting !== undefined && isBad(setting) ? [setting] : [];
  });
}

/** Each that fails the test; where it is missing from a whole message, the member that should hold it. */
export function unless(all: readonly Settings[], names: readonly string[], isGood: Test): readonly View[] {
  return all.flatMap(({ isWhole, view }) => {
    const setting = view.at(...names);
    if (setting !== undefined) return isGood(setting) ? [] : [setting];
    return isWhole ? [deepest(view, names)] : [];
  });
}

function deepest(view: View, names: readonly string[]): View {
  const [name, ...rest] = names;
  const next = name === undefined ? undefined : view.get(name);
  return next === undefined ? view : deepest(next, rest);
}

export function viewsOf(all: readonly Settings[]): readonly View[] {
  return all.map(({ view }) => view);
}

export function whole(view: View): Settings {
  return { view, isWhole: true };
}

/** Of all settings, those under a name, with the same word on whether they are whole. */
export function below(all: readonly Settings[], ...names: readonly string[]): readonly Settings[] {
  return all.flatMap(({ isWhole, view }) => {
    const inner = view.at(...names);
    return inner === undefined ? [] : [{ view: inner, isWhole }];
  });
}

export function ofKind({ resources }: Gateway, kind: string): readonly Resource[] {
  return resources.filter((resource) => resource.kind === kind);
}

export function surroundingsOf({ surroundings }: Gateway, kind: string): readonly Resource[] {
  return surroundings.filter((resource) => resource.kind === kind);
}

/** Istio's, whose policies are for every namespace. */
export function isRootNamespace(namespace: string | undefined, { meshes }: Gateway): boolean {
  const named = meshes.flatMap((mesh) => mesh.get('root_namespace')?.text ?? []);
  return namespace !== undefined && (named.length > 0 ? named : ['istio-system']).includes(namespace);
}

/** Routes of Gateway API that forward requests. */
export const HTTP_ROUTES: readonly string[] = ['HTTPRoute', 'GRPCRoute'];

/** Routes of Gateway API that forward bytes, which no HTTP filter sees. */
export const BYTE_ROUTES: readonly string[] = ['TCPRoute', 'TLSRoute', 'UDPRoute'];

/** Istio's providers that ask a verifier over gRPC. */
export function istioProviders({ meshes }: Gateway): readonly View[] {
  return providersOf(meshes, 'envoy_ext_authz_grpc');
}

export function providersOf(meshes: readonly View[], kind: string): readonly View[] {
  return meshes.flatMap((mesh) => mesh.list('extension_providers')).flatMap((one) => one.get(kind) ?? []);
}

/** `extAuth` of Envoy Gateway's policies. */
export function extAuths(gateway: Gateway): readonly View[] {
  return ofKind(gateway, 'SecurityPolicy').flatMap(({ spec }) => spec.get('ext_auth') ?? []);
}

/** `externalAuth` of Gateway API's routes. */
export function externalAuths(gateway: Gateway): readonly View[] {
  return httpRouteRules(gateway).flatMap((rule) =>
    rule.list('filters').flatMap((filter) => filter.get('external_auth') ?? []),
  );
}

export function httpRoutes(gateway: Gateway): readonly Resource[] {
  return HTTP_ROUTES.flatMap((kind) => ofKind(gateway, kind));
}

export function httpRouteRules(gateway: Gateway): readonly View[] {
  return httpRoutes(gateway).flatMap(({ spec }) => spec.list('rules'));
}

/** Istio's policies that ask a provider. */
export function customPolicies(gateway: Gateway): readonly Resource[] {
  return ofKind(gateway, 'AuthorizationPolicy').filter(({ spec }) =>
    spec.get('action')?.isOneOf('CUSTOM', 3),
  );
}

/** Where bodies are held for the check: of filters, of single routes, of Istio's providers. */
export function bodySettings(gateway: Gateway): readonly Settings[] {
  const ofRoutes = gateway.overrides.flatMap(
    ({ settings }) => settings.at('check_settings', 'with_request_body') ?? [],
  );
  const ofProviders = istioProviders(gateway).flatMap(
    (one) => one.get('include_request_body_in_check') ?? [],
  );
  return [...below(gateway.checks, 'with_request_body'), ...[...ofRoutes, ...ofProviders].map(whole)];
}

/** What says whom to ask: of filters, and of single routes. */
export function grpcServices(gateway: Gateway): readonly Settings[] {
  const ofRoutes = gateway.overrides.flatMap(
    ({ settings }) => settings.at('check_settings', 'grpc_service') ?? [],
  );
  return [...below(gateway.checks, 'grpc_service'), ...ofRoutes.map(whole)];
}
