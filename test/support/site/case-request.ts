/** Requests of test/support/cases/, as the callers of this site make them. */
import { newJti } from '../../../src/protocol/signing.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import {
  type ClaimsDraft,
  type WireRequest as ReceivedRequest,
  type RequestEdits,
  signIntent,
} from '../fixtures/edited-request.ts';
import { type CallerName, intendedRequest, type RequestPlan } from '../fixtures/signed-request.ts';
import type { RouteId } from '../fixtures/snapshot.ts';
import { attestedCaller, buildCaller, type Caller, derivedKeyCaller } from './callers.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from './routes.ts';
import { noteSecrets } from './signed-request.ts';
import { AUTH_SITE, nowSeconds, type Site } from './site.ts';

const CALLERS: { readonly [C in CallerName]: (site: Site) => Caller } = {
  billing: (site) => derivedKeyCaller(site),
  reporting: (site) => derivedKeyCaller(site, 'dk_reporting'),
  revoked: (site) => derivedKeyCaller(site, 'dk_revoked'),
  broker: (site) => attestedCaller(site),
  brokerEc: (site) => attestedCaller(site, 'broker-p256'),
  automation: buildCaller,
};

/** The routes that mean the same at both sites. */
const ROUTE_OF: { readonly [R in RouteId]?: SiteRoute } = {
  'orders-read': ROUTES.readOrder,
  'orders-write': ROUTES.createOrder,
  tenants: ROUTES.tenantOrders,
  attested: ROUTES.vault,
  future: ROUTES.forecast,
  prices: ROUTES.livePrices,
};

export function siteRouteOf({ route }: RequestPlan): SiteRoute {
  const found = ROUTE_OF[route];
  if (found === undefined) throw new Error(`the site has no route like ${route}`);
  return found;
}

const EMPTY = { kind: 'exact', bytes: Buffer.alloc(0) } as const;

/** Signs anew at each call. */
export function caseRequest(site: Site, plan: RequestPlan, edits: RequestEdits = {}): WireRequest {
  const route = siteRouteOf(plan);
  const caller = CALLERS[plan.caller](site);
  const intended = intendedRequest(plan);
  const { jti, jws, signature, transcriptText, wire } = signIntent(
    {
      request: {
        ...intended,
        // The usual body of a route stays away: nginx cannot verify one.
        ...(intended.body.kind === 'exact' && plan.body === undefined && { body: EMPTY }),
        scheme: 'http',
        authority: AUTHORITY,
        target: route.path_template.replace(/\{[^}]*\}/, '4711'),
      },
      keyId: caller.keyId,
      claims: claimsOf(caller, route),
      passportKey: caller.passportKey,
      holder: caller.holder,
      authSite: AUTH_SITE,
      routeId: route.route_id,
      isBodyBound: true,
      passportLines: (passport) => [{ name: 'authorization', value: `Passport ${passport}` }],
    },
    edits,
  );
  const transcript = Buffer.from(transcriptText, 'latin1').toString('base64url');
  noteSecrets(site, {
    passport: jws,
    proof: { transcript, signature: signature.toString('base64url') },
    transcript: { jti },
  });
  return asSent(wire);
}

function claimsOf(caller: Caller, { audience }: SiteRoute): ClaimsDraft {
  const now = nowSeconds();
  return {
    iss: caller.issuer,
    sub: caller.subject,
    trust_domain: caller.trustDomain,
    aud: audience,
    iat: now,
    exp: now + 300,
    key_binding: caller.keyBinding,
    cnf: { jwk: caller.holder.publicKey.jwk },
    jti: newJti(),
  };
}

function asSent({ body, headers, scheme, ...line }: ReceivedRequest): WireRequest {
  if (body.kind === 'unknown') throw new Error('a body that is unknown cannot be sent');
  return {
    ...line,
    ...(scheme === 'http' ? {} : { scheme }),
    headers: headers.map(({ name, value }) => [name, value]),
    ...(body.kind === 'exact' && body.bytes.length > 0 && { body: body.bytes }),
  };
}
