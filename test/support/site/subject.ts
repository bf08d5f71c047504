/** The usual caller of the site and its routes, as the cases of `proofgate conformance` see them. */

import {
  AUTHORIZATION_HEADER,
  type PassportHeader,
  passportHeaderOf,
} from '../../../src/protocol/wire-names.ts';
import type { Subject, SubjectChanges } from '../../../src/tools/conformance/wire/conformance-case.ts';
import { derivedKeyCaller } from './callers.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from './routes.ts';
import { sign, signDpop, signHttp } from './signed-request.ts';
import type { Site } from './site.ts';

/** @param passportHeader of the route without a body */
export function subjectOf(site: Site, passportHeader: PassportHeader = AUTHORIZATION_HEADER): Subject {
  return subjectAt(site, READ_ROUTES[passportHeader], ROUTES.createOrder);
}

interface ReadRoute {
  readonly route: SiteRoute;
  readonly target: string;
  readonly isOfRoute: RegExp;
}

export function subjectAt(site: Site, { isOfRoute, route, target }: ReadRoute, write: SiteRoute): Subject {
  const passportHeader = passportHeaderOf(route.passport_header);
  const caller = derivedKeyCaller(site);
  const signed = (route: SiteRoute, changes: SubjectChanges = {}) =>
    sign(site, { caller, route, ...changes });
  return {
    passportHeader,
    method: route.method,
    scheme: 'http',
    authority: AUTHORITY,
    target,
    isOfRoute: (path) => isOfRoute.test(path),
    sign: (changes) => signed(route, changes),
    signWrite: (changes) => signed(write, changes),
    signHttp: (changes) => signHttp(site, { caller, route, ...changes }),
    signHttpWrite: (changes) => signHttp(site, { caller, route: write, ...changes }),
    signDpop: (changes) => signDpop(site, { caller, route, ...changes }),
  };
}

export const READ_ROUTES = {
  authorization: { route: ROUTES.readOrder, target: '/v1/orders/4711', isOfRoute: /^\/v1\/orders\/[^/]+$/ },
  'x-proofgate-passport': { route: ROUTES.bearer, target: '/v1/bearer', isOfRoute: /^\/v1\/bearer$/ },
} as const;
