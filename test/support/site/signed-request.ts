/** Requests as callers sign them: correctly, or with the one fault that a plan names. */

import { passportHeaderOf } from '../../../src/protocol/wire-names.ts';
import { headerValues, type WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import {
  type DpopChanges,
  type HttpChanges,
  signDpopRequest,
  signHttpRequest,
} from '../../../src/tools/conformance/wire/sign-standard-request.ts';
import {
  type SignedWireRequest,
  signWireRequest,
  type WireCaller,
  type WireChanges,
  type WireTarget,
} from '../../../src/tools/conformance/wire/sign-wire-request.ts';
import { AUTHORITY, type SiteRoute } from './routes.ts';
import { AUTH_SITE, type Site } from './site.ts';

export { withHeader, withMoreHeaders } from '../../../src/tools/conformance/wire/sign-wire-request.ts';

export interface RequestPlan extends WireChanges {
  readonly caller: WireCaller;
  readonly route: SiteRoute;
  /** Path and query. Default: the route's template, its placeholder filled in. */
  readonly target?: string;
}

export type SignedRequest = SignedWireRequest;

export function sign(site: Site, { caller, route, target, ...changes }: RequestPlan): SignedRequest {
  const signed = signWireRequest(caller, wireTarget(route, target), changes);
  noteSecrets(site, signed);
  return signed;
}

function wireTarget(route: SiteRoute, target: string | undefined): WireTarget {
  return {
    authSite: AUTH_SITE,
    routeId: route.route_id,
    audience: route.audience,
    bodyRule: route.body ?? 'bound',
    method: route.method,
    scheme: 'http',
    authority: AUTHORITY,
    passportHeader: passportHeaderOf(route.passport_header),
    target: target ?? route.path_template.replace(/\{[^}]*\}/, '4711'),
  };
}

type StandardPlan<Changes> = Changes & Pick<RequestPlan, 'caller' | 'route' | 'target'>;

/** With an HTTP message signature. */
export function signHttp(site: Site, { caller, route, target, ...changes }: StandardPlan<HttpChanges>) {
  return noted(site, signHttpRequest(caller, wireTarget(route, target), changes));
}

/** With a DPoP proof. */
export function signDpop(site: Site, { caller, route, target, ...changes }: StandardPlan<DpopChanges>) {
  return noted(site, signDpopRequest(caller, wireTarget(route, target), changes));
}

/** Registers the credentials, which are long, as secrets. */
function noted({ secrets }: Site, request: WireRequest): WireRequest {
  for (const name of ['authorization', 'x-proofgate-passport', 'signature', 'dpop']) {
    for (const value of headerValues(request.headers ?? [], name)) {
      if (value.length > 60) secrets.add(`a value of ${name}`, value.replace(/^\w+[ =]:?/, ''));
    }
  }
  return request;
}

/** {@link sign}, where only what is sent matters. */
export function signedRequest(site: Site, plan: RequestPlan): WireRequest {
  return sign(site, plan).request;
}

/** Registers secrets: a reader of a log could use any of these, or link a caller's requests by it. */
export function noteSecrets(
  { secrets }: Site,
  {
    passport,
    proof,
    transcript,
  }: Pick<SignedRequest, 'passport' | 'proof'> & {
    readonly transcript: Pick<SignedRequest['transcript'], 'jti'>;
  },
): void {
  const [, claims = '', signature = ''] = passport.split('.');
  secrets.add('a passport', passport);
  secrets.add("a passport's claims", claims);
  secrets.addBytes("a passport's signature", Buffer.from(signature, 'base64url'));
  secrets.add('a transcript', proof.transcript);
  secrets.addBytes('a proof signature', Buffer.from(proof.signature, 'base64url'));
  // Every transcript contains it, in any encoding or line breaks.
  secrets.add("a proof's jti", transcript.jti);
}
