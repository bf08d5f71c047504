/**
 * Reads an HTTP Message Signature (RFC 9421) of a request under a profile that the verifier fixes, and builds the
 * signature base from the request as received. It verifies nothing.
 * Source: docs/design/protocol.md "HTTP Message Signatures".
 */
import { type ContentDigest, parseContentDigest } from './content-digest.ts';
import type { RequestHeaders } from './credentials.ts';
import { isKeyId, isSignableHeaderName, parsePositiveInteger } from './identifiers.ts';
import type { SignatureAlgorithm } from './public-key.ts';
import { pathOf } from './request-target.ts';
import { SIGNATURE_BYTES } from './signature.ts';
import {
  type InnerListMember,
  parseByteSequences,
  parseInnerLists,
  serializeByteSequences,
  serializeString,
  stringOf,
} from './structured-fields.ts';
import {
  CONTENT_DIGEST_HEADER,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
  type PassportHeader,
  ROUTE_HEADER,
} from './wire-names.ts';

/** What a signature must cover and state. A further profile (WIMSE) is a further value of this type. */
export interface SignatureProfile {
  readonly tagOf: (authSite: string) => string;
  /** Alternatives: the signature must cover every component of at least one list. */
  readonly targets: readonly (readonly string[])[];
  /** Derived components (RFC 9421 section 2.2) that must be covered. */
  readonly required: readonly string[];
  /** Derived components that may be covered. */
  readonly allowed: ReadonlySet<string>;
  /** Parameters (RFC 9421 section 2.3), each once. Others are refused. */
  readonly parameters: readonly string[];
  readonly optionalParameters: readonly string[];
  readonly nonce: RegExp;
}

/** Signed by a derived key of the site, or with a passport by its holder key. */
export const SITE_PROFILE: SignatureProfile = {
  tagOf: (authSite) => `proofgate/${authSite}`,
  targets: [['@target-uri'], ['@scheme', '@authority', '@path', '@query']],
  required: ['@method'],
  allowed: new Set(['@method', '@target-uri', '@scheme', '@authority', '@path', '@query']),
  parameters: ['created', 'expires', 'nonce', 'keyid', 'tag'],
  optionalParameters: ['alg'],
  nonce: /^[A-Za-z0-9_-]{22,86}$/,
};

/** A well-formed signature under a profile. Nothing in it is verified. */
export interface HttpSignature {
  /** Names of the covered components, in order, each once. */
  readonly components: readonly string[];
  readonly keyId: string;
  /** RFC 9421 section 3.3; undefined when the signature does not state it. */
  readonly algorithm: string | undefined;
  /** `nonce`. */
  readonly jti: string;
  /** `created`. */
  readonly issuedAtSeconds: number;
  /** `expires`. */
  readonly expiresAtSeconds: number;
  /** Value of `@signature-params`, as sent. */
  readonly params: string;
  readonly signature: Buffer;
  /** Undefined when `content-digest` is not covered. */
  readonly contentDigest: ContentDigest | undefined;
  /** The two fields without this signature; undefined when it was the only one. */
  readonly otherSignatures: OtherSignatures | undefined;
}

export interface OtherSignatures {
  /** Value of `Signature-Input`. */
  readonly input: string;
  /** Value of `Signature`; empty when the other inputs have none. */
  readonly signature: string;
}

/**
 * `absent`: no signature has the profile's tag for this site. `malformed`: one may have it, but the fields are no canonical
 * dictionaries, or the signature departs from the profile.
 */
export type HttpSignatureReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'read'; readonly signature: HttpSignature };

const ABSENT: HttpSignatureReading = { kind: 'absent' };
const MALFORMED: HttpSignatureReading = { kind: 'malformed' };

/**
 * Whether a signature of the request may have the profile's tag for this site, however malformed the fields are. A string has
 * one serialization (RFC 9651 section 4.1.6), so fields without that text have no such signature.
 */
export function mayHaveSignature(
  headers: Pick<RequestHeaders, 'values'>,
  { tagOf }: SignatureProfile,
  authSite: string,
): boolean {
  const tag = serializeString(tagOf(authSite));
  return headers.values(HTTP_SIGNATURE_INPUT_HEADER).some((value) => value.includes(tag));
}

/**
 * @param passportHeader the header that the route names
 * @param mayCoverPassport whether the request has a passport there
 */
export function readHttpSignature(
  headers: RequestHeaders,
  profile: SignatureProfile,
  authSite: string,
  passportHeader: PassportHeader,
  mayCoverPassport: boolean,
): HttpSignatureReading {
  const field = headers.lookup(HTTP_SIGNATURE_INPUT_HEADER);
  if (field.kind === 'absent' || !mayHaveSignature(headers, profile, authSite)) return ABSENT;
  const inputs = field.kind === 'single' ? parseInnerLists(field.value) : undefined;
  if (inputs === undefined) return MALFORMED;
  const tag = profile.tagOf(authSite);
  const [input, second] = inputs.filter(({ parameters }) => stringOf(parameters.get('tag')) === tag);
  if (input === undefined) return ABSENT;
  const signatures = second === undefined ? readSignatures(headers) : undefined;
  const isCovered = (name: string) =>
    profile.allowed.has(name) ||
    name === ROUTE_HEADER ||
    (mayCoverPassport && name === passportHeader) ||
    isCoverable(name, passportHeader);
  const signature = signatures && readInput(input, signatures, profile, isCovered, headers);
  if (signatures === undefined || signature === undefined) return MALFORMED;
  const otherSignatures = othersOf(input.label, inputs, signatures);
  return { kind: 'read', signature: { ...signature, otherSignatures } };
}

function readSignatures(headers: RequestHeaders): ReadonlyMap<string, Buffer> | undefined {
  const field = headers.lookup(HTTP_SIGNATURE_HEADER);
  return field.kind === 'single' ? parseByteSequences(field.value) : undefined;
}

function readInput(
  { items, label, parameters, value }: InnerListMember,
  signatures: ReadonlyMap<string, Buffer>,
  profile: SignatureProfile,
  isCovered: (name: string) => boolean,
  headers: RequestHeaders,
): Omit<HttpSignature, 'otherSignatures'> | undefined {
  const signature = signatures.get(label);
  const stated = readParameters(parameters, profile);
  if (signature?.length !== SIGNATURE_BYTES || stated === undefined || items.length === 0) return undefined;
  if (items.some(({ hasParameters, text }) => hasParameters || !isCovered(text))) return undefined;
  const components = items.map(({ text }) => text);
  const contentDigest = components.includes(CONTENT_DIGEST_HEADER) ? readDigest(headers) : undefined;
  if (contentDigest === 'malformed') return undefined;
  return { ...stated, components, params: value, signature, contentDigest };
}

/** A signature cannot cover the fields that carry it. */
function isCoverable(name: string, passportHeader: PassportHeader): boolean {
  if (name === HTTP_SIGNATURE_HEADER || name === HTTP_SIGNATURE_INPUT_HEADER) return false;
  return isSignableHeaderName(name, passportHeader);
}

function readParameters(parameters: ReadonlyMap<string, string>, profile: SignatureProfile) {
  const isKnown = (name: string) =>
    profile.parameters.includes(name) || profile.optionalParameters.includes(name);
  if (![...parameters.keys()].every(isKnown)) return undefined;
  const issuedAtSeconds = parsePositiveInteger(parameters.get('created') ?? '');
  const expiresAtSeconds = parsePositiveInteger(parameters.get('expires') ?? '');
  const jti = stringOf(parameters.get('nonce'));
  const keyId = stringOf(parameters.get('keyid'));
  const algorithm = stringOf(parameters.get('alg'));
  if (issuedAtSeconds === undefined || expiresAtSeconds === undefined || !isKeyId(keyId)) return undefined;
  if (jti === undefined || !profile.nonce.test(jti)) return undefined;
  if (parameters.has('alg') && algorithm === undefined) return undefined;
  return { issuedAtSeconds, expiresAtSeconds, jti, keyId, algorithm };
}

/** Undefined when the header is absent: the signature base then lacks it. */
function readDigest(headers: RequestHeaders): ContentDigest | undefined | 'malformed' {
  const field = headers.lookup(CONTENT_DIGEST_HEADER);
  if (field.kind === 'absent') return undefined;
  const digest = field.kind === 'single' ? parseContentDigest(field.value) : undefined;
  return digest ?? 'malformed';
}

function othersOf(
  label: string,
  inputs: readonly InnerListMember[],
  signatures: ReadonlyMap<string, Buffer>,
): OtherSignatures | undefined {
  const others = inputs.filter((input) => input.label !== label);
  if (others.length === 0) return undefined;
  return {
    input: others.map((input) => `${input.label}=${input.value}`).join(', '),
    signature: serializeByteSequences([...signatures].filter(([name]) => name !== label)),
  };
}

/** Names of the `alg` parameter (RFC 9421 section 3.3). */
const ALGORITHM_NAMES: { readonly [A in SignatureAlgorithm]: string } = {
  Ed25519: 'ed25519',
  ES256: 'ecdsa-p256-sha256',
};

/** Whether the signature states no algorithm, or this one. */
export function allowsAlgorithm(
  { algorithm: stated }: HttpSignature,
  algorithm: SignatureAlgorithm,
): boolean {
  return stated === undefined || stated === ALGORITHM_NAMES[algorithm];
}

/** A request as received: the authority in lower case, without the scheme's default port. */
export interface SignedMessage {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  /** Path and query exactly as sent. */
  readonly target: string;
  readonly headers: Pick<RequestHeaders, 'lookup'>;
}

/**
 * `covered`: components with their values, in order. `unknown`: the first header that is absent, repeated, empty or has other
 * than visible ASCII.
 */
export type CoveredValues =
  | { readonly kind: 'covered'; readonly lines: readonly (readonly [name: string, value: string])[] }
  | { readonly kind: 'unknown'; readonly name: string };

const VISIBLE = /^[\x20-\x7e]+$/;

export function coveredValues(components: readonly string[], message: SignedMessage): CoveredValues {
  const lines: (readonly [string, string])[] = [];
  for (const name of components) {
    const value = name.startsWith('@') ? derivedValue(name, message) : fieldValue(name, message);
    if (value === undefined) return { kind: 'unknown', name };
    lines.push([name, value]);
  }
  return { kind: 'covered', lines };
}

/** RFC 9421 section 2.2. */
function derivedValue(
  name: string,
  { authority, method, scheme, target }: SignedMessage,
): string | undefined {
  switch (name) {
    case '@method':
      return method;
    case '@target-uri':
      return `${scheme}://${authority}${target}`;
    case '@scheme':
      return scheme;
    case '@authority':
      return authority;
    case '@path':
      return pathOf(target);
    case '@query':
      return target.slice(pathOf(target).length) || '?';
    default:
      return undefined;
  }
}

/** At least one visible character: no value can be confused with a missing one. */
function fieldValue(name: string, { headers }: SignedMessage): string | undefined {
  const found = headers.lookup(name);
  return found.kind === 'single' && VISIBLE.test(found.value) ? found.value : undefined;
}

/** The signature base (RFC 9421 section 2.5): its last line has no line feed. */
export function formatSignatureBase(
  lines: readonly (readonly [name: string, value: string])[],
  params: string,
): string {
  let text = '';
  for (const [name, value] of lines) text += `"${name}": ${value}\n`;
  return `${text}"@signature-params": ${params}`;
}

/** The first component that the profile or the route needs and the signature does not cover. */
export function firstUncovered(
  components: readonly string[],
  { required, targets }: SignatureProfile,
  needed: readonly string[],
): string | undefined {
  const missing = (names: readonly string[]) => names.find((name) => !components.includes(name));
  const target = targets.some((names) => missing(names) === undefined) ? undefined : missing(targets.flat());
  return missing(required) ?? target ?? missing(needed);
}

/**
 * The value of `Accept-Signature` (RFC 9421 section 5.1): what a signature of the profile must cover and state. Without
 * values for `created`, `expires`, `nonce` and `keyid`, which the caller chooses.
 * @param needed beside the profile's own components
 */
export function acceptSignature(
  { optionalParameters: _, parameters, required, tagOf, targets }: SignatureProfile,
  authSite: string,
  needed: readonly string[],
): string {
  const components = [...required, ...(targets[0] ?? []), ...needed].map((name) => `"${name}"`);
  const chosen = parameters.filter((name) => name !== 'tag').map((name) => `;${name}`);
  return `sig=(${components.join(' ')})${chosen.join('')};tag=${serializeString(tagOf(authSite))}`;
}
