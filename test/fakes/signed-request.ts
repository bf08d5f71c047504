/**
 * Requests with valid credentials, and ways to change one thing of them: the passport's content or signer, the transcript's
 * content or signer, and what finally arrives.
 */
import { hash } from 'node:crypto';
import type { HeaderLookup, RequestHeaders } from '../../src/protocol/credentials.ts';
import { PASSPORT_TYPE, passportSha256 } from '../../src/protocol/passport.ts';
import { normalizeAuthority, parseOrigin } from '../../src/protocol/request-target.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import { newJti, type SigningKey } from '../../src/protocol/signing.ts';
import { formatTranscript, NOT_BOUND } from '../../src/protocol/transcript.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../src/protocol/wire-names.ts';
import type { BodyState, RequestFacts } from '../../src/verifier/decision/facts/request-facts.ts';
import {
  AUTH_SITE,
  BROKER_ISSUER,
  CLIENT_ISSUER,
  NOW_SECONDS,
  ORIGIN,
  TRUST_DOMAIN,
} from './bundle-content.ts';
import {
  AUTOMATION_ISSUER,
  CONTEXT,
  INTERNAL_ORIGIN,
  KEY_ID,
  PARTNERS_ORIGIN,
  PROVENANCE,
  type RouteId,
  type SiteKeys,
} from './snapshot.ts';

export interface HeaderLine {
  readonly name: string;
  readonly value: string;
}

/** A request as it goes over the wire. */
export interface WireRequest {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly target: string;
  readonly headers: readonly HeaderLine[];
  readonly body: Exclude<BodyState, { kind: 'hashed' }>;
}

/** Claims as JSON, to be changed at will. */
export interface ClaimsDraft {
  [name: string]: unknown;
  iat: number;
  exp: number;
  provenance?: { [name: string]: string };
  context?: { [name: string]: string };
}

/** What the proof will sign; numbers and names may be changed at will. */
export interface TranscriptDraft {
  authSite: string;
  keyId: string;
  passportSha256: string;
  issuer: string;
  subject: string;
  audience: string;
  routeId: string;
  method: string;
  scheme: string;
  authority: string;
  target: string;
  jti: string;
  issuedAtSeconds: number;
  expiresAtSeconds: number;
  contentSha256: string;
  headers: HeaderLine[];
}

/** Changes on the way from a plan to a request, in the order in which they are applied. */
export interface RequestEdits {
  readonly joseHeader?: (header: { [name: string]: unknown }) => void;
  readonly claims?: (claims: ClaimsDraft) => void;
  readonly passportKey?: SigningKey;
  readonly passport?: (jws: string) => string;
  readonly transcript?: (transcript: TranscriptDraft) => void;
  /** Just before it is signed. */
  readonly transcriptText?: (text: string) => string;
  readonly proofKey?: SigningKey;
  readonly received?: (request: WireRequest) => WireRequest;
}

/** Both, one after the other; of two keys the first. */
export function bothEdits(first: RequestEdits, second: RequestEdits): RequestEdits {
  const edits = [first, second];
  const passportKey = first.passportKey ?? second.passportKey;
  const proofKey = first.proofKey ?? second.proofKey;
  return {
    joseHeader: (header) => edits.forEach((edit) => void edit.joseHeader?.(header)),
    claims: (claims) => edits.forEach((edit) => void edit.claims?.(claims)),
    ...(passportKey === undefined ? {} : { passportKey }),
    passport: (jws) => edits.reduce((text, edit) => edit.passport?.(text) ?? text, jws),
    transcript: (transcript) => edits.forEach((edit) => void edit.transcript?.(transcript)),
    transcriptText: (text) => edits.reduce((value, edit) => edit.transcriptText?.(value) ?? value, text),
    ...(proofKey === undefined ? {} : { proofKey }),
    received: (request) => edits.reduce((value, edit) => edit.received?.(value) ?? value, request),
  };
}

export type CallerName = keyof typeof KEY_ID;

interface CallerIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly keyBinding: string;
}

const IDENTITIES: { readonly [C in CallerName]: CallerIdentity } = {
  broker: {
    issuer: BROKER_ISSUER,
    subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing`,
    keyBinding: 'attested_workload',
  },
  brokerEc: {
    issuer: BROKER_ISSUER,
    subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/search`,
    keyBinding: 'attested_workload',
  },
  automation: { issuer: AUTOMATION_ISSUER, subject: 'ci:release', keyBinding: 'software' },
  billing: { issuer: CLIENT_ISSUER, subject: 'client:billing', keyBinding: 'software' },
  reporting: { issuer: CLIENT_ISSUER, subject: 'client:reporting', keyBinding: 'software' },
  revoked: { issuer: CLIENT_ISSUER, subject: 'client:billing', keyBinding: 'software' },
};

export interface RequestPlan {
  readonly caller: CallerName;
  readonly route: RouteId;
  /** Holds the passport; a derived key holds its own. */
  readonly holder?: SigningKey;
  readonly nowSeconds?: number;
  readonly body?: Uint8Array;
  /** Last segment of targets that have a placeholder. */
  readonly item?: string;
}

export interface SignedRequest {
  readonly wire: WireRequest;
  readonly facts: RequestFacts;
  readonly jws: string;
  /** As the transcript names it. */
  readonly jti: string;
  readonly transcriptText: string;
  readonly signature: Buffer;
  readonly holder: SigningKey;
}

/** Makes the request of a plan; without edits it is allowed. */
export function signRequest(keys: SiteKeys, plan: RequestPlan, edits: RequestEdits = {}): SignedRequest {
  const intended = intendedRequest(plan);
  const holder = plan.holder ?? keys[plan.caller];
  const claims = claimsOf(plan, holder);
  edits.claims?.(claims);
  const jws = signPassportOf(keys, plan, claims, edits);
  const transcript = transcriptOf(plan, intended, claims, jws);
  edits.transcript?.(transcript);
  const text = formatTranscript(transcript);
  const transcriptText = edits.transcriptText?.(text) ?? text;
  const proofKey = edits.proofKey ?? holder;
  const bytes = Buffer.from(transcriptText, 'latin1');
  const signature = signMessage(proofKey.publicKey.algorithm, proofKey.privateKey, bytes);
  const sent = withCredentials(intended, passportLines(plan.route, jws), bytes, signature);
  const wire = edits.received?.(sent) ?? sent;
  return { wire, facts: factsOfWire(wire), jws, jti: transcript.jti, transcriptText, signature, holder };
}

/** The request as a caller means it, without credentials. */
function intendedRequest(plan: RequestPlan): WireRequest {
  const { method, origin, target, headers, hasBody } = ROUTE_REQUESTS[plan.route];
  const parsed = parseOrigin(origin);
  if (parsed === undefined) throw new Error('not an origin');
  const body = plan.body ?? (hasBody ? Buffer.from('{"amount":1}') : undefined);
  return {
    method,
    ...parsed,
    target: target.replace('{item}', plan.item ?? '17'),
    headers,
    body: body === undefined ? { kind: 'none' } : { kind: 'exact', bytes: body },
  };
}

interface RouteRequest {
  readonly method: string;
  readonly origin: string;
  readonly target: string;
  readonly audience: string;
  readonly headers: readonly HeaderLine[];
  readonly hasBody: boolean;
}

const get = (target: string, changes: Partial<RouteRequest> = {}): RouteRequest => ({
  method: 'GET',
  origin: ORIGIN,
  target,
  audience: ORIGIN,
  headers: [],
  hasBody: false,
  ...changes,
});
const tenant: HeaderLine = { name: 'x-tenant', value: 'acme' };

const ROUTE_REQUESTS: { readonly [R in RouteId]: RouteRequest } = {
  'orders-read': get('/v1/orders/{item}?fields=id&fields=total'),
  'orders-write': get('/v1/orders', { method: 'POST', hasBody: true }),
  'orders-cancel': get('/v1/orders/{item}', { method: 'DELETE' }),
  prices: get('/v1/prices?item={item}'),
  'prices-capped': get('/v1/prices/capped'),
  future: get('/v1/future'),
  uploads: get('/v1/uploads/a/{item}', { method: 'PUT', hasBody: true }),
  tenants: get('/v1/tenants?page={item}', {
    headers: [tenant, { name: 'accept', value: 'text/html;q=0.5' }],
  }),
  forward: get('/v1/forward?n={item}'),
  partners: get('/v1/partners', { origin: PARTNERS_ORIGIN }),
  internal: get('/v1/internal', { origin: INTERNAL_ORIGIN, audience: 'urn:internal' }),
  attested: get('/v1/attested?n={item}'),
  bearer: get('/v1/bearer?n={item}'),
  everything: get('/v1/everything/{item}?x=%20', { method: 'POST', headers: [tenant], hasBody: true }),
};

function claimsOf(plan: RequestPlan, holder: SigningKey): ClaimsDraft {
  const identity = IDENTITIES[plan.caller];
  const now = plan.nowSeconds ?? NOW_SECONDS;
  return {
    iss: identity.issuer,
    sub: identity.subject,
    trust_domain: TRUST_DOMAIN,
    aud: ROUTE_REQUESTS[plan.route].audience,
    iat: now,
    exp: now + 300,
    key_binding: identity.keyBinding,
    cnf: { jwk: holder.publicKey.jwk },
    jti: `passport-${newJti()}`,
    provenance: { ...PROVENANCE },
    context: { ...CONTEXT },
  };
}

function signPassportOf(keys: SiteKeys, plan: RequestPlan, claims: ClaimsDraft, edits: RequestEdits): string {
  const key = edits.passportKey ?? keys[plan.caller];
  const header: { [name: string]: unknown } = {
    typ: PASSPORT_TYPE,
    alg: key.publicKey.algorithm,
    kid: KEY_ID[plan.caller],
  };
  edits.joseHeader?.(header);
  const jws = signJws(header, claims, key);
  return edits.passport?.(jws) ?? jws;
}

/** A compact JWS over whatever it is given. */
function signJws(header: object, claims: object, key: SigningKey): string {
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = signMessage(key.publicKey.algorithm, key.privateKey, Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}

function transcriptOf(
  plan: RequestPlan,
  intended: WireRequest,
  claims: ClaimsDraft,
  jws: string,
): TranscriptDraft {
  const now = plan.nowSeconds ?? NOW_SECONDS;
  const isUnbound = plan.route === 'uploads';
  const hasBody = intended.body.kind === 'exact';
  const bytes = intended.body.kind === 'exact' ? intended.body.bytes : Buffer.alloc(0);
  return {
    authSite: AUTH_SITE,
    keyId: KEY_ID[plan.caller],
    passportSha256: passportSha256(jws),
    issuer: String(claims.iss),
    subject: String(claims.sub),
    audience: ROUTE_REQUESTS[plan.route].audience,
    routeId: plan.route,
    method: intended.method,
    scheme: intended.scheme,
    authority: normalizeAuthority(intended.scheme, intended.authority),
    target: intended.target,
    jti: newJti(),
    issuedAtSeconds: now,
    expiresAtSeconds: now + 60,
    contentSha256: hasBody && !isUnbound ? hash('sha256', bytes, 'base64url') : NOT_BOUND,
    headers: [...intended.headers].sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** Where the passport has a header of its own, `Authorization` is the application's. */
function passportLines(route: RouteId, jws: string): readonly HeaderLine[] {
  if (route !== 'bearer') return [{ name: AUTHORIZATION_HEADER, value: `Passport ${jws}` }];
  return [
    { name: AUTHORIZATION_HEADER, value: 'Bearer of-the-application' },
    { name: PASSPORT_HEADER, value: jws },
  ];
}

function withCredentials(
  request: WireRequest,
  passport: readonly HeaderLine[],
  transcript: Buffer,
  signature: Buffer,
): WireRequest {
  return {
    ...request,
    headers: [
      ...request.headers,
      ...passport,
      { name: TRANSCRIPT_HEADER, value: transcript.toString('base64url') },
      { name: SIGNATURE_HEADER, value: signature.toString('base64url') },
    ],
  };
}

/** Changes the value of a header's lines. */
export function withHeader(
  request: WireRequest,
  name: string,
  change: (value: string) => string,
): WireRequest {
  const headers = request.headers.map((line) =>
    line.name === name ? { name, value: change(line.value) } : line,
  );
  return { ...request, headers };
}

export function withoutHeader(request: WireRequest, name: string): WireRequest {
  return { ...request, headers: request.headers.filter((line) => line.name !== name) };
}

export function factsOfWire({ headers, ...request }: WireRequest): RequestFacts {
  return { ...request, headers: headersOfLines(headers) };
}

/** Request headers from separate lines: a repeated name is ambiguous. */
export function headersOfLines(lines: readonly HeaderLine[]): RequestHeaders {
  return {
    lookup(wanted): HeaderLookup {
      const [first, ...others] = lines.filter(({ name }) => name.toLowerCase() === wanted);
      if (first === undefined) return { kind: 'absent' };
      if (others.length > 0) return { kind: 'ambiguous' };
      return { kind: 'single', value: first.value.replace(/^[ \t]+|[ \t]+$/g, '') };
    },
    values: (wanted) => lines.flatMap(({ name, value }) => (name.toLowerCase() === wanted ? [value] : [])),
    names: () => lines.map(({ name }) => name),
    lines: () => lines.map(({ name, value }) => [name, value]),
  };
}
