/** Rules about a request after the check: one proof must not reach the API twice. */
import type { Gateway, Rule } from '../gateway/gateway.ts';
import { ofKind, routeRules, specsOf, where } from '../gateway/gateway-queries.ts';
import { everyMapping, type View } from '../gateway/view.ts';

/** Conditions under which nothing has been sent yet. */
const UNSENT = new Set(['connect-failure', 'reset-before-request']);

function isUnsent(policy: View): boolean {
  const conditions = policy.get('retry_on')?.text?.split(',') ?? [];
  return conditions.length > 0 && conditions.every((condition) => UNSENT.has(condition.trim()));
}

/** Route parts without those for requests of the workload beside Envoy. */
function routeParts({ listeners, routeParts }: Gateway): readonly View[] {
  const outbound = listeners.filter(({ isOutbound }) => isOutbound).flatMap(({ chains }) => chains);
  const parts = everyMapping(outbound.flatMap(({ routes }) => routes));
  const excluded = new Set(parts.map(({ identity }) => identity));
  return routeParts.filter(({ identity }) => !excluded.has(identity));
}

function virtualServices(gateway: Gateway): readonly View[] {
  return ofKind(gateway, 'VirtualService').flatMap(({ spec }) => spec.list('http'));
}

/** Istio retries by default if neither the route nor the mesh sets the number. */
function retriedByDefault(gateway: Gateway): readonly View[] {
  const isSaid = gateway.meshes.some((mesh) => mesh.get('default_http_retry_policy') !== undefined);
  return isSaid
    ? []
    : virtualServices(gateway).filter(
        (one) => one.get('route') !== undefined && one.get('retries') === undefined,
      );
}

/** Filters of Gateway API routes. */
const filters = (gateway: Gateway) => routeRules(gateway).flatMap((rule) => rule.list('filters'));

export const DELIVERY_RULES: readonly Rule[] = [
  {
    id: 'sent-twice',
    severity: 'error',
    effect: 'may send one checked request, or one check, twice',
    fix: 'no retry_policy, no hedge_policy, no internal_redirect_policy (Istio: retries and defaultHttpRetryPolicy: { attempts: 0 }; Gateway API, Envoy Gateway: no retry): the caller retries, and signs anew',
    find: (gateway) => [
      ...where(routeParts(gateway), 'retry_policy', (policy) => !isUnsent(policy)),
      ...where(routeParts(gateway), 'hedge_policy'),
      ...['internal_redirect_policy', 'internal_redirect_action'].flatMap((name) =>
        where(routeParts(gateway), name, (policy) => policy.text !== 'PASS_THROUGH_INTERNAL_REDIRECT'),
      ),
      ...where(virtualServices(gateway), 'retries', (retries) => retries.get('attempts')?.number !== 0),
      ...where(
        gateway.meshes,
        'default_http_retry_policy',
        (retries) => retries.get('attempts')?.number !== 0,
      ),
      ...retriedByDefault(gateway),
      ...where(routeRules(gateway), 'retry'),
      ...where(specsOf(gateway, 'BackendTrafficPolicy'), 'retry'),
    ],
  },
  {
    id: 'mirrored',
    severity: 'error',
    effect: 'sends a checked request to a second server as well',
    fix: 'no request_mirror_policies (Istio: no mirror; Gateway API: no RequestMirror)',
    find: (gateway) => [
      ...['request_mirror_policies', 'request_mirror_policy'].flatMap((name) =>
        where(routeParts(gateway), name),
      ),
      ...['mirror', 'mirrors'].flatMap((name) => where(virtualServices(gateway), name)),
      ...where(filters(gateway), 'request_mirror'),
    ],
  },
];
