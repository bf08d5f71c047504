/** Requests to a benchmark site as Envoy hands them to the ext_authz server: each is different and properly signed. */
import { randomUUID } from 'node:crypto';
import { loadPackageDefinition, requestSerializer } from '../../src/process/ext-authz/service.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';
import type { PublicJwk } from '../../src/protocol/public-key.ts';
import { newJti, signPassport, signTranscript } from '../../src/protocol/signing.ts';
import type { Transcript } from '../../src/protocol/transcript.ts';
import {
  AUDIENCE,
  AUTH_SITE,
  AUTHORITY,
  type BenchCaller,
  type BenchSite,
  ISSUER,
  pathOf,
  routeName,
  TRUST_DOMAIN,
} from './site.ts';

const PROOF_TTL_SECONDS = 300;
/** Routes that requests go to; a site may have many more. */
const ROUTES_IN_USE = 10;

export interface RequestPlan {
  readonly caller: BenchCaller;
  readonly path: string;
  readonly routeId: string;
  /** `new`: each request has a passport of its own, which the verifier has not seen. Default: one passport a caller. */
  readonly passport?: 'new';
  /** Changes what is signed. */
  readonly transcript?: Partial<Transcript>;
  /** Changes headers after signing; undefined takes one away. */
  readonly headers?: { readonly [name: string]: (value: string) => string | undefined };
  /** The path that is sent, if it differs from the signed one. */
  readonly sentPath?: string;
}

export interface HttpFields {
  readonly path: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
  readonly body?: Buffer;
}

const serialize = requestSerializer(loadPackageDefinition());

/** Good requests, spread over callers and routes. */
export function goodRequests(site: BenchSite, count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => encodeRequest(fieldsOf(goodPlan(site, index))));
}

export function goodPlan({ callers, size }: BenchSite, index: number): RequestPlan {
  const caller = callers[index % callers.length];
  if (caller === undefined) throw new Error('a site without callers');
  const route = index % Math.min(size.routes, ROUTES_IN_USE);
  return { caller, path: `${pathOf(route)}/${index}`, routeId: routeName(route) };
}

export function encodeRequest({ body, lines, path }: HttpFields): Buffer {
  const headers = lines.map(([key, value]) => ({ key, raw_value: Buffer.from(value, 'latin1') }));
  const http = { method: 'GET', path, host: AUTHORITY, scheme: 'https', header_map: { headers } };
  const request = body === undefined ? { http } : { http: { ...http, raw_body: body } };
  return serialize({ attributes: { request } });
}

/** As Envoy sends them with `encode_raw_headers`. */
export function fieldsOf(plan: RequestPlan): HttpFields {
  const path = plan.sentPath ?? plan.path;
  const lines: [string, string][] = [
    [':authority', AUTHORITY],
    [':path', path],
    [':method', 'GET'],
    [':scheme', 'https'],
    ['user-agent', 'proofgate/0.2.4'],
    ['accept', '*/*'],
    ...credentialLines(plan),
    ...linesOfGateway(),
  ];
  const changed = lines.flatMap(([name, value]): [string, string][] => {
    const change = plan.headers?.[name];
    const next = change === undefined ? value : change(value);
    return next === undefined ? [] : [[name, next]];
  });
  return { path, lines: changed };
}

/** What the gateway and those before it add. */
export function linesOfGateway(): [string, string][] {
  return [
    ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['x-forwarded-for', '10.0.0.1'],
    ['x-forwarded-proto', 'https'],
    ['x-request-id', randomUUID()],
  ];
}

/** The three headers that a caller sends. */
export function credentialLines(plan: RequestPlan): [string, string][] {
  const passport = passportOf(plan.caller, plan.passport);
  const { signature, transcript } = signTranscript(transcriptOf(plan, passport), plan.caller.key);
  return [
    ['authorization', `Passport ${passport}`],
    ['x-proofgate-transcript', transcript],
    ['x-proofgate-signature', signature],
  ];
}

interface IssuedPassport {
  readonly jws: string;
  readonly issuedAtSeconds: number;
}

const passports = new Map<BenchCaller, IssuedPassport>();
/** A passport lives for 300 s: requests are used within a minute or so. */
const RENEW_AFTER_SECONDS = 60;

export function passportOf(caller: BenchCaller, kind: RequestPlan['passport']): string {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const known = passports.get(caller);
  if (kind === undefined && known !== undefined && nowSeconds - known.issuedAtSeconds < RENEW_AFTER_SECONDS) {
    return known.jws;
  }
  const { key, keyId, subject } = caller;
  const jws = signPassport(
    {
      keyId,
      issuer: ISSUER,
      subject,
      trustDomain: TRUST_DOMAIN,
      audience: AUDIENCE,
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + 300,
      keyBinding: 'software',
      holderJwk: key.publicKey.jwk,
    },
    key,
  );
  if (kind === undefined) passports.set(caller, { jws, issuedAtSeconds: nowSeconds });
  return jws;
}

function transcriptOf({ caller, path, routeId, transcript }: RequestPlan, passport: string): Transcript {
  const issuedAtSeconds = Math.floor(Date.now() / 1000);
  return {
    authSite: AUTH_SITE,
    keyId: caller.keyId,
    passportSha256: passportSha256(passport),
    issuer: ISSUER,
    subject: caller.subject,
    audience: AUDIENCE,
    routeId,
    method: 'GET',
    scheme: 'https',
    authority: AUTHORITY,
    target: path,
    jti: newJti(),
    issuedAtSeconds,
    expiresAtSeconds: issuedAtSeconds + PROOF_TTL_SECONDS,
    contentSha256: '-',
    headers: [],
    ...transcript,
  };
}

/** One transcript with its signature, both base64url, for a bare verification of the same size. */
export function signedTranscript(
  site: BenchSite,
  index = 1,
): {
  readonly jwk: PublicJwk;
  readonly message: string;
  readonly signature: string;
} {
  const plan = goodPlan(site, index);
  const { signature, transcript } = signTranscript(
    transcriptOf(plan, passportOf(plan.caller, undefined)),
    plan.caller.key,
  );
  return { jwk: plan.caller.key.publicKey.jwk, message: transcript, signature };
}
