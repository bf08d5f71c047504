/** Requests as callers sign them: correctly, or with the one fault that a plan names. */
import { createHash } from 'node:crypto';
import { passportSha256 } from '../../../src/protocol/passport.ts';
import {
  newJti,
  type PassportToSign,
  type ProofHeaders,
  signPassport,
  signTranscript,
} from '../../../src/protocol/signing.ts';
import { NOT_BOUND, type SignedHeader, type Transcript } from '../../../src/protocol/transcript.ts';
import type { Framing, HeaderLine, WireRequest } from '../harness/exchange.ts';
import type { Caller } from './callers.ts';
import { AUTHORITY, type SiteRoute } from './routes.ts';
import { AUTH_SITE, nowSeconds, type Site } from './site.ts';

export interface RequestPlan {
  readonly caller: Caller;
  readonly route: SiteRoute;
  /** Path and query. Default: the route's template, its placeholder filled in. */
  readonly target?: string;
  readonly body?: Uint8Array | string;
  readonly framing?: Framing;
  /** Sent and signed. */
  readonly signedHeaders?: readonly SignedHeader[];
  /** Sent, not signed. */
  readonly otherHeaders?: readonly HeaderLine[];
  /** Claims signed otherwise than they are. */
  readonly passport?: Partial<PassportToSign>;
  /** Lines signed otherwise than they are. */
  readonly transcript?: Partial<Transcript>;
}

export interface SignedRequest {
  readonly request: WireRequest;
  /** The compact JWS. */
  readonly passport: string;
  readonly proof: ProofHeaders;
  readonly transcript: Transcript;
}

export function sign(site: Site, plan: RequestPlan): SignedRequest {
  const passport = makePassport(site, plan);
  const transcript = { ...transcriptOf(plan, passport), ...plan.transcript };
  const proof = signTranscript(transcript, plan.caller.holder);
  noteSecrets(site, { passport, proof, transcript });
  return { passport, proof, transcript, request: wireRequest(plan, passport, proof) };
}

/** {@link sign}, where only what is sent matters. */
export function signedRequest(site: Site, plan: RequestPlan): WireRequest {
  return sign(site, plan).request;
}

/** Replaces every line of that name with one line, or with none. */
export function withHeader(request: WireRequest, name: string, value?: string): WireRequest {
  const others = (request.headers ?? []).filter(([key]) => key.toLowerCase() !== name.toLowerCase());
  return { ...request, headers: value === undefined ? others : [...others, [name, value]] };
}

export function withMoreHeaders(request: WireRequest, headers: readonly HeaderLine[]): WireRequest {
  return { ...request, headers: [...(request.headers ?? []), ...headers] };
}

function makePassport(site: Site, { caller, passport, route }: RequestPlan): string {
  const issuedAtSeconds = passport?.issuedAtSeconds ?? nowSeconds();
  const jws = signPassport(
    {
      keyId: caller.keyId,
      issuer: caller.issuer,
      subject: caller.subject,
      trustDomain: caller.trustDomain,
      audience: route.audience,
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + 300,
      keyBinding: caller.keyBinding,
      holderJwk: caller.holder.publicKey.jwk,
      ...(caller.provenance === undefined ? {} : { provenance: caller.provenance }),
      ...(caller.context === undefined ? {} : { context: caller.context }),
      ...passport,
    },
    caller.passportKey,
  );
  site.secrets.add('a passport', jws);
  return jws;
}

function transcriptOf(plan: RequestPlan, passport: string): Transcript {
  const { caller, route } = plan;
  const issuedAtSeconds = plan.transcript?.issuedAtSeconds ?? nowSeconds();
  const headers = [...(plan.signedHeaders ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    authSite: AUTH_SITE,
    keyId: caller.keyId,
    passportSha256: passportSha256(passport),
    issuer: caller.issuer,
    subject: caller.subject,
    audience: route.audience,
    routeId: route.route_id,
    method: route.method,
    scheme: 'http',
    authority: AUTHORITY,
    target: targetOf(plan),
    jti: newJti(),
    issuedAtSeconds,
    expiresAtSeconds: issuedAtSeconds + 60,
    contentSha256: contentSha256(plan),
    headers,
  };
}

function targetOf({ route, target }: RequestPlan): string {
  return target ?? route.path_template.replace(/\{[^}]*\}/, '4711');
}

function contentSha256({ body, route }: RequestPlan): string {
  const bearing = ['POST', 'PUT', 'PATCH'].includes(route.method) || (body?.length ?? 0) > 0;
  if (route.body === 'unbound' || !bearing) return NOT_BOUND;
  return createHash('sha256')
    .update(body ?? '')
    .digest('base64url');
}

function wireRequest(plan: RequestPlan, passport: string, proof: ProofHeaders): WireRequest {
  const { body, framing, otherHeaders = [], route, signedHeaders = [] } = plan;
  return {
    method: route.method,
    target: targetOf(plan),
    authority: AUTHORITY,
    headers: [
      ['authorization', `Passport ${passport}`],
      ['x-proofgate-transcript', proof.transcript],
      ['x-proofgate-signature', proof.signature],
      ...signedHeaders.map(({ name, value }): HeaderLine => [name, value]),
      ...otherHeaders,
    ],
    ...(body === undefined ? {} : { body }),
    ...(framing === undefined ? {} : { framing }),
  };
}

/** Registers secrets: a reader of a log could use any of these, or link a caller's requests by it. */
function noteSecrets(
  { secrets }: Site,
  { passport, proof, transcript }: Pick<SignedRequest, 'passport' | 'proof' | 'transcript'>,
): void {
  const [, claims = '', signature = ''] = passport.split('.');
  secrets.add("a passport's claims", claims);
  secrets.addBytes("a passport's signature", Buffer.from(signature, 'base64url'));
  secrets.add('a transcript', proof.transcript);
  secrets.addBytes('a proof signature', Buffer.from(proof.signature, 'base64url'));
  // Every transcript contains it, in any encoding or line breaks.
  secrets.add("a proof's jti", transcript.jti);
}
