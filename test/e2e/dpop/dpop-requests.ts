/** Requests with DPoP proofs for the routes of this suite, and ways to change them on the way. */
import type { PublicJwk } from '../../../src/protocol/public-key.ts';
import { signPassport } from '../../../src/protocol/signing.ts';
import {
  type HeaderLine,
  headerValues,
  type WireClient,
  type WireRequest,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { type DpopPlan, signDpop } from '../../support/protocol/dpop-signer.ts';
import { signHttp } from '../../support/protocol/http-signer.ts';
import { attestedCaller, type Caller, derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { AUTH_SITE, nowSeconds, type Site } from '../../support/site/site.ts';

export const READ: SiteRoute = {
  ...ROUTES.readOrder,
  route_id: 'dpop-read',
  path_template: '/v1/dpop/{order_id}',
  accepted_proofs: ['dpop'],
  unbound: ['route', 'site'],
};
export const NONCED: SiteRoute = {
  ...READ,
  route_id: 'dpop-nonced',
  path_template: '/v1/nonced/{order_id}',
  dpop_nonce: 'required',
};
export const WRITE: SiteRoute = {
  ...READ,
  route_id: 'dpop-write',
  method: 'POST',
  path_template: '/v1/dpop',
  signed_headers: ['x-tenant'],
  unbound: ['route', 'site', 'query', 'body', 'headers'],
};
export const EMPTY: SiteRoute = {
  ...READ,
  route_id: 'dpop-empty',
  method: 'POST',
  path_template: '/v1/dpop-empty',
};
export const EITHER: SiteRoute = {
  ...READ,
  route_id: 'dpop-either',
  path_template: '/v1/either/{order_id}',
  accepted_proofs: ['transcript-v1', 'http-message-signatures', 'dpop'],
};

export type Sent = WireRequest & { readonly headers: readonly HeaderLine[] };

export const without = (request: Sent, name: string): Sent => ({
  ...request,
  headers: request.headers.filter(([key]) => key !== name),
});
export const withLine = (request: Sent, ...line: HeaderLine): Sent => ({
  ...request,
  headers: [...request.headers, line],
});
export const changed = (request: Sent, name: string, change: (value: string) => string): Sent => ({
  ...request,
  headers: request.headers.map(([key, value]) => [key, key === name ? change(value) : value] as const),
});

export function answerText({ body, headers, status }: WireResponse): string {
  if (status === 200) return '200';
  const [reason] = headerValues(headers, 'x-proofgate-reason');
  const { detail } = JSON.parse(body.toString()) as { readonly detail?: string };
  return `${status} ${reason}${detail === undefined ? '' : `/${detail}`}`;
}

export const answerOf = async (client: WireClient, request: WireRequest) =>
  answerText(await client.send(request));

export interface Plan {
  readonly caller?: Caller;
  readonly token?: string;
  readonly method?: string;
  readonly target?: string;
  readonly scheme?: string;
  readonly proof?: Partial<DpopPlan>;
  readonly headers?: readonly HeaderLine[];
  readonly body?: Buffer;
}

export const url = (path: string) => `http://${AUTHORITY}${path}`;
export const EITHER_TARGET = { target: '/v1/either/4711' };

export type Requests = ReturnType<typeof requestsOf>;

export function requestsOf(site: Site) {
  const billing = () => derivedKeyCaller(site);

  function passportOf(
    { holder, issuer, keyBinding, keyId, passportKey, subject, trustDomain }: Caller = billing(),
    audience = READ.audience,
    holderJwk: PublicJwk = holder.publicKey.jwk,
  ): string {
    const issuedAtSeconds = nowSeconds();
    const times = { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + 300 };
    const identity = { issuer, subject, trustDomain, keyBinding };
    return signPassport({ keyId, ...identity, audience, ...times, holderJwk }, passportKey);
  }

  function dpopRequest(plan: Plan = {}) {
    const {
      body,
      caller = billing(),
      headers = [],
      method = 'GET',
      scheme = 'DPoP',
      target = '/v1/dpop/4711',
    } = plan;
    const token = plan.token ?? passportOf(caller);
    const [path = ''] = target.split('?');
    const usual = { key: caller.holder, method, url: `http://${AUTHORITY}${path}`, token };
    const proof = signDpop({ ...usual, issuedAtSeconds: nowSeconds(), ...plan.proof });
    const lines: HeaderLine[] = [['authorization', `${scheme} ${token}`], ['dpop', proof], ...headers];
    const request = { method, target, authority: AUTHORITY, headers: lines };
    return body === undefined ? request : { ...request, body };
  }

  const transcriptRequest = (): Sent => {
    const { headers = [], ...request } = signedRequest(site, { caller: billing(), route: EITHER });
    return { ...request, headers };
  };

  async function httpSignature(nonce?: string): Promise<readonly HeaderLine[]> {
    const { holder: key, keyId } = billing();
    const options = { key, keyId, authSite: AUTH_SITE, createdSeconds: nowSeconds() };
    const request = { method: 'GET', url: url('/v1/either/4711'), headers: {} };
    return Object.entries(await signHttp(request, nonce === undefined ? options : { ...options, nonce }));
  }

  const attested = () => attestedCaller(site);

  return { attested, billing, passportOf, dpopRequest, transcriptRequest, httpSignature };
}

/** A JWS of which one part is changed. */
export const withPart = (jws: string, index: number, change: (part: string) => string): string =>
  jws
    .split('.')
    .map((part, at) => (at === index ? change(part) : part))
    .join('.');

/** The signature (r, n - s), which is valid for the same text. */
export function otherSpelling(jws: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  return withPart(jws, 2, (part) => {
    const signature = Buffer.from(part, 'base64url');
    const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
    const other = Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex');
    return Buffer.concat([signature.subarray(0, 32), other]).toString('base64url');
  });
}
