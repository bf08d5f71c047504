/** The usual caller of the site and its routes, as the cases of `proofgate conformance` see them. */

import type { Reason } from '../../../src/protocol/reasons.ts';
import { AUTHORIZATION_HEADER, type PassportHeader } from '../../../src/protocol/wire-names.ts';
import type {
  PublicFault,
  Subject,
  SubjectChanges,
} from '../../../src/tools/conformance/wire/conformance-case.ts';
import type { DenialCase } from '../cases/denial-case.ts';
import { derivedKeyCaller } from './callers.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from './routes.ts';
import { sign } from './signed-request.ts';
import type { Site } from './site.ts';

/** @param passportHeader of the route without a body */
export function subjectOf(site: Site, passportHeader: PassportHeader = AUTHORIZATION_HEADER): Subject {
  const { isOfRoute, route, target } = READ_ROUTES[passportHeader];
  const signed = (route: SiteRoute, changes: SubjectChanges = {}) =>
    sign(site, { caller: derivedKeyCaller(site), route, ...changes });
  return {
    passportHeader,
    method: route.method,
    scheme: 'http',
    authority: AUTHORITY,
    target,
    isOfRoute: (path) => isOfRoute.test(path),
    sign: (changes) => signed(route, changes),
    signWrite: (changes) => signed(ROUTES.createOrder, changes),
  };
}

const READ_ROUTES = {
  authorization: { route: ROUTES.readOrder, target: '/v1/orders/4711', isOfRoute: /^\/v1\/orders\/[^/]+$/ },
  'x-proofgate-passport': { route: ROUTES.bearer, target: '/v1/bearer', isOfRoute: /^\/v1\/bearer$/ },
} as const;

/** Envoy itself refuses header names with `_`. */
const REFUSED_BY_ENVOY = / with _$/;

/** As cases of the denials that a verifier behind Envoy decides. */
export function denialCases<R extends Reason>(faults: readonly PublicFault<R>[]): readonly DenialCase<R>[] {
  return faults
    .filter(({ what }) => !REFUSED_BY_ENVOY.test(what))
    .map(({ detail, make, needs, passportIn = AUTHORIZATION_HEADER, what }) => ({
      what,
      detail,
      routeId: (needs === 'write_route' ? ROUTES.createOrder : READ_ROUTES[passportIn].route).route_id,
      provoke: (site) => make(subjectOf(site, passportIn)),
    }));
}
