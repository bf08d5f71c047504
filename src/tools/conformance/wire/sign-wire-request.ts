/** Signs a request for the wire: correctly, or with the fault of a case. */

import type { BodyRule } from '../../../protocol/body-binding.ts';
import { contentSha256 } from '../../../protocol/body-binding.ts';
import type { KeyBinding } from '../../../protocol/identifiers.ts';
import { passportSha256 } from '../../../protocol/passport.ts';
import {
  newJti,
  type PassportToSign,
  type ProofHeaders,
  type SigningKey,
  signPassport,
  signTranscript,
} from '../../../protocol/signing.ts';
import type { SignedHeader, Transcript } from '../../../protocol/transcript.ts';
import { AUTHORIZATION_HEADER, PASSPORT_HEADER, type PassportHeader } from '../../../protocol/wire-names.ts';
import type { Framing, HeaderLine, WireRequest } from './exchange.ts';

/** The caller that signs. */
export interface WireCaller {
  readonly keyId: string;
  readonly issuer: string;
  readonly subject: string;
  readonly trustDomain: string;
  readonly keyBinding: KeyBinding;
  readonly provenance?: { readonly [name: string]: string };
  readonly context?: { readonly [name: string]: string };
  /** The key that signs the passport, or the compact JWS that a broker has signed. */
  readonly passportKey: SigningKey | string;
  /** The key that signs the proof; its public half is in the passport. */
  readonly holder: SigningKey;
}

/** The requested resource. */
export interface WireTarget {
  readonly authSite: string;
  readonly routeId: string;
  readonly audience: string;
  readonly bodyRule: BodyRule;
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  /** Path and query. */
  readonly target: string;
  /** Default: `Authorization`. */
  readonly passportHeader?: PassportHeader | undefined;
}

export interface WireChanges {
  readonly body?: Uint8Array | string | undefined;
  readonly framing?: Framing | undefined;
  /** Headers that are sent and signed. */
  readonly signedHeaders?: readonly SignedHeader[] | undefined;
  /** Headers that are sent but not signed. */
  readonly otherHeaders?: readonly HeaderLine[] | undefined;
  /** Claims that are signed with wrong values. */
  readonly passport?: Partial<PassportToSign> | undefined;
  /** Transcript lines that are signed with wrong values. */
  readonly transcript?: Partial<Transcript> | undefined;
}

export interface SignedWireRequest {
  readonly request: WireRequest;
  readonly passportHeader: PassportHeader;
  /** The compact JWS. */
  readonly passport: string;
  readonly proof: ProofHeaders;
  readonly transcript: Transcript;
}

const PASSPORT_TTL_SECONDS = 300;
export const PROOF_TTL_SECONDS = 60;

export function signWireRequest(
  caller: WireCaller,
  target: WireTarget,
  changes: WireChanges = {},
): SignedWireRequest {
  const passport = passportOf(caller, target, changes);
  const transcript = { ...transcriptOf(caller, target, changes, passport), ...changes.transcript };
  const proof = signTranscript(transcript, caller.holder);
  const { passportHeader = AUTHORIZATION_HEADER } = target;
  const credentials = [
    passportLine(passportHeader, passport),
    ['x-proofgate-transcript', proof.transcript],
    ['x-proofgate-signature', proof.signature],
  ] as const;
  return {
    passport,
    passportHeader,
    proof,
    transcript,
    request: wireRequest(target, changes, credentials),
  };
}

export function passportOf(
  caller: WireCaller,
  { audience }: Pick<WireTarget, 'audience'>,
  { passport }: Pick<WireChanges, 'passport'>,
): string {
  if (typeof caller.passportKey === 'string') return caller.passportKey;
  const issuedAtSeconds = passport?.issuedAtSeconds ?? nowSeconds();
  return signPassport(
    {
      keyId: caller.keyId,
      issuer: caller.issuer,
      subject: caller.subject,
      trustDomain: caller.trustDomain,
      audience,
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + PASSPORT_TTL_SECONDS,
      keyBinding: caller.keyBinding,
      holderJwk: caller.holder.publicKey.jwk,
      ...(caller.provenance === undefined ? {} : { provenance: caller.provenance }),
      ...(caller.context === undefined ? {} : { context: caller.context }),
      ...passport,
    },
    caller.passportKey,
  );
}

function transcriptOf(
  caller: WireCaller,
  target: WireTarget,
  { body, signedHeaders = [], transcript }: WireChanges,
  passport: string,
): Transcript {
  const { audience, authority, authSite, bodyRule, method, routeId, scheme } = target;
  const issuedAtSeconds = transcript?.issuedAtSeconds ?? nowSeconds();
  return {
    authSite,
    keyId: caller.keyId,
    passportSha256: passportSha256(passport),
    issuer: caller.issuer,
    subject: caller.subject,
    audience,
    routeId,
    method,
    scheme,
    authority,
    target: target.target,
    jti: newJti(),
    issuedAtSeconds,
    expiresAtSeconds: issuedAtSeconds + PROOF_TTL_SECONDS,
    contentSha256: contentSha256(method, bodyRule, Buffer.from(body ?? '')),
    headers: [...signedHeaders].sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

export function wireRequest(
  { authority, method, scheme, target }: WireTarget,
  { body, framing, otherHeaders = [], signedHeaders = [] }: WireChanges,
  credentials: readonly HeaderLine[],
): WireRequest {
  return {
    method,
    target,
    authority,
    ...(scheme === 'http' ? {} : { scheme }),
    headers: [
      ...credentials,
      ...signedHeaders.map(({ name, value }): HeaderLine => [name, value]),
      ...otherHeaders,
    ],
    ...(body === undefined ? {} : { body }),
    ...(framing === undefined ? {} : { framing }),
  };
}

export function passportLine(passportHeader: PassportHeader, passport: string): HeaderLine {
  return [passportHeader, passportHeader === PASSPORT_HEADER ? passport : `Passport ${passport}`];
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Replaces every line of that name with one line, or with none. */
export function withHeader(request: WireRequest, name: string, value?: string): WireRequest {
  const others = (request.headers ?? []).filter(([key]) => key.toLowerCase() !== name.toLowerCase());
  return { ...request, headers: value === undefined ? others : [...others, [name, value]] };
}

export function withMoreHeaders(request: WireRequest, headers: readonly HeaderLine[]): WireRequest {
  return { ...request, headers: [...(request.headers ?? []), ...headers] };
}
