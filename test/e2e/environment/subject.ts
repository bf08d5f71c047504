/** The usual caller of the site and its routes, as the cases of `proofgate conformance` see them. */
import type { PublicFault, Subject, SubjectChanges } from '../../../src/conformance/conformance-case.ts';
import type { Reason } from '../../../src/protocol/reasons.ts';
import { derivedKeyCaller } from './callers.ts';
import type { DenialCase } from './denials/denial-case.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from './routes.ts';
import { sign } from './signed-request.ts';
import type { Site } from './site.ts';

export function subjectOf(site: Site): Subject {
  const signed = (route: SiteRoute, changes: SubjectChanges = {}) =>
    sign(site, { caller: derivedKeyCaller(site), route, ...changes });
  return {
    method: ROUTES.readOrder.method,
    scheme: 'http',
    authority: AUTHORITY,
    target: '/v1/orders/4711',
    isOfRoute: (path) => /^\/v1\/orders\/[^/]+$/.test(path),
    sign: (changes) => signed(ROUTES.readOrder, changes),
    signWrite: (changes) => signed(ROUTES.createOrder, changes),
  };
}

/** Envoy itself refuses header names with `_`. */
const REFUSED_BY_ENVOY = / with _$/;

/** As cases of the denials that a verifier behind Envoy decides. */
export function denialCases<R extends Reason>(faults: readonly PublicFault<R>[]): readonly DenialCase<R>[] {
  return faults
    .filter(({ what }) => !REFUSED_BY_ENVOY.test(what))
    .map(({ detail, make, needs, what }) => ({
      what,
      detail,
      routeId: (needs === 'write_route' ? ROUTES.createOrder : ROUTES.readOrder).route_id,
      provoke: (site) => make(subjectOf(site)),
    }));
}
