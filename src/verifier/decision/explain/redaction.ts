/**
 * Redaction of a captured request. A text that the bundle also contains, or that is in a published list, is shown as it
 * is; every other text by its length, wherever it occurs, because a name does not say whether its value is a secret.
 * Source: docs/operate/explain.md "What is never shown".
 */
import type { BundleKey, RequiredAttribute, Route, SourceRule } from '../../../bundle/compile/snapshot.ts';
import { tokenOf } from '../../../protocol/accepted-credentials.ts';
import { parsePathTemplate } from '../../../protocol/path-template.ts';
import { normalizeAuthority } from '../../../protocol/request-target.ts';
import { NOT_BOUND } from '../../../protocol/transcript.ts';
import { tokenKeyOf } from '../facts/caller.ts';
import { type Explanation, HEADER_LINE } from './explain.ts';
import { isWellKnownHeader, isWellKnownMethod } from './well-known-names.ts';

interface RedactionOptions {
  readonly known: KnownTexts;
  /** `--show-values`: shows everything except credentials. */
  readonly showValues: boolean;
  /** Credentials of the request, which are never shown. */
  readonly credentials: readonly string[];
}

const SCHEMES = ['http', 'https'] as const;

/** A UUID, as every decision has. */
export function isDecisionId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}

/** Every text of a request that is printed goes through this class. */
export class Redaction {
  readonly #known: KnownTexts;
  readonly #showValues: boolean;
  readonly #credentials: readonly string[];

  constructor({ credentials, known, showValues }: RedactionOptions) {
    this.#known = known;
    this.#showValues = showValues;
    this.#credentials = credentials;
  }

  get values(): 'redacted' | 'shown' {
    return this.#showValues ? 'shown' : 'redacted';
  }

  /** An identity, an identifier or an attribute value. */
  text(value: string): string {
    if (this.#known.texts.has(value)) return quoted(value);
    if (this.#showValues) return this.#open(value);
    const prefix = this.#known.prefixes
      .filter((candidate) => value.startsWith(candidate))
      .reduce((longest, candidate) => (candidate.length > longest.length ? candidate : longest), '');
    return value === prefix ? quoted(prefix) : `${quoted(prefix)}${redacted(value.slice(prefix.length))}`;
  }

  decisionId(value: string): string {
    return isDecisionId(value) ? value : this.text(value);
  }

  method(value: string): string {
    return isWellKnownMethod(value) ? value : this.text(value);
  }

  scheme(value: string): string {
    return SCHEMES.some((scheme) => scheme === value) ? value : this.text(value);
  }

  /** Shows an origin of the site. User name and password of any other are never shown. */
  authority(value: string): string {
    if (this.#isOfSite(value)) return quoted(value);
    const at = value.lastIndexOf('@');
    if (!this.#showValues || at === -1) return this.text(value);
    return `${redacted(value.slice(0, at))}@${this.#open(value.slice(at + 1))}`;
  }

  #isOfSite(authority: string): boolean {
    return SCHEMES.some((scheme) =>
      this.#known.hasOrigin(`${scheme}://${normalizeAuthority(scheme, authority)}`),
    );
  }

  /** Its form, with the segments that the route has: `/v1/orders/[2 characters]?[4 characters]=[9 characters]`. */
  target(value: string): string {
    const query = value.indexOf('?');
    const path = query === -1 ? value : value.slice(0, query);
    const shown = path
      .split('/')
      .map((segment) => this.#segment(segment))
      .join('/');
    if (query === -1) return shown;
    const parameters = value.slice(query + 1).split('&');
    return `${shown}?${parameters.map((parameter) => this.#parameter(parameter)).join('&')}`;
  }

  #segment(segment: string): string {
    if (segment === '' || this.#known.segments.has(segment)) return segment;
    return this.#showValues ? this.#open(segment) : redacted(segment);
  }

  #parameter(parameter: string): string {
    const at = parameter.indexOf('=');
    if (parameter === '') return '';
    if (at === -1) return this.#showValues ? this.#open(parameter) : redacted(parameter);
    const [name, value] = [parameter.slice(0, at), parameter.slice(at + 1)];
    if (!this.#showValues) return `${redacted(name)}=${value === '' ? '' : redacted(value)}`;
    return `${this.#open(name)}=${isCredentialName(name) ? redacted(value) : this.#open(value)}`;
  }

  headerName(name: string): string {
    if (isWellKnownHeader(name) || this.#known.headers.has(name)) return quoted(name);
    return this.#showValues ? this.#open(name) : redacted(name);
  }

  /** Name of a transcript line, such as `header.accept`. All names except those of headers belong to the format. */
  lineName(line: string): string {
    if (!line.startsWith(HEADER_LINE)) return quoted(line);
    return `${HEADER_LINE}${this.headerName(line.slice(HEADER_LINE.length))}`;
  }

  /**
   * The value of a transcript's line.
   * @param signedNames headers that the caller signed; values of other headers are never shown
   */
  line(line: string, value: string, signedNames: ReadonlySet<string>): string {
    if (line.startsWith(HEADER_LINE)) {
      const name = line.slice(HEADER_LINE.length);
      const isOpen = this.#showValues && signedNames.has(name) && !isCredentialName(name);
      return isOpen ? this.#open(value) : redacted(value);
    }
    switch (line) {
      case 'jti':
        return redacted(value);
      case 'issued-at':
      case 'expires-at':
        return value;
      case 'method':
        return this.method(value);
      case 'scheme':
        return this.scheme(value);
      case 'authority':
        return this.authority(value);
      case 'target':
        return this.target(value);
      case 'headers':
        return value === NOT_BOUND
          ? value
          : value
              .split(',')
              .map((name) => this.headerName(name))
              .join(',');
      default:
        // Redact the body hash too: a small body can be found by trying.
        return value === NOT_BOUND ? value : this.text(value);
    }
  }

  /** With `--show-values`: everything that does not look like a credential. */
  #open(value: string): string {
    return looksLikeCredential(value, this.#credentials) ? redacted(value) : quoted(value);
  }
}

/**
 * Heuristics for texts that look like credentials. Only `--show-values` uses them: no list of names is complete, so the
 * default redaction does not depend on it.
 */

const NAME = new RegExp(
  [
    '^(?:auth|bearer|code|dpop|hash|hmac|jws|jwt|key|nonce|otp|pass|pin|pwd|sid|sig|state|ticket)$',
    'access[-_]?key|api[-_]?key|functions-key|subscription-key',
    'assertion|authorization|cookie|credential|oidc|passphrase|passw|pwd|saml|secret|session|signature|token|verifier',
    '(?:^|[^a-z])(?:auth|code|jwt|key|otp|pin|sig)(?:$|[^a-z])',
  ].join('|'),
  'i',
);

/** Names of headers and query parameters. */
function isCredentialName(name: string): boolean {
  return NAME.test(decoded(name));
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** An authentication scheme with a value; a JWS or similar; a long text without words. */
const VALUE = new RegExp(
  [
    '(?:basic|bearer|digest|dpop|negotiate|passport|token)(?: |%20|\\+)',
    '[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]*',
    '[A-Za-z0-9_+/=-]{48,}',
  ].join('|'),
  'i',
);

/** @param own the credentials of the request itself */
function looksLikeCredential(value: string, own: readonly string[]): boolean {
  return VALUE.test(value) || own.some((credential) => credential !== '' && value.includes(credential));
}

/**
 * Redacts texts that can contain a secret to their length. A hash would not hide a PIN or a one-time code, because all values
 * can be tried.
 */

/** `[24 characters]` */
export function redacted(value: string): string {
  return value.length === 1 ? '[1 character]' : `[${value.length} characters]`;
}

/** Escapes everything except visible ASCII and spaces, so that the text cannot send commands to a terminal. */
export function quoted(value: string): string {
  return value.replace(/[^\x20-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}

interface KnownTexts {
  /** Identities, identifiers, attribute values. */
  readonly texts: ReadonlySet<string>;
  /** Allowed prefixes of subjects. */
  readonly prefixes: readonly string[];
  /** Literal segments of the route's path. */
  readonly segments: ReadonlySet<string>;
  /** Headers that the route requires to be signed, lower case. */
  readonly headers: ReadonlySet<string>;
  /** @param origin `scheme://authority`, canonical */
  hasOrigin(origin: string): boolean;
}

/**
 * Collects the bundle's own texts that relate to the request. A text of the request that is among them can be shown; any
 * other text could be a secret.
 */
export function knownTextsOfRequest({ caller, credentials, route, snapshot }: Explanation): KnownTexts {
  const texts = [
    // One of two fixed values.
    caller?.keyBinding,
    caller && tokenKeyOf(caller, snapshot) && caller.keyId,
    // A hash of a signed text, so it cannot be reversed by trying values.
    credentials && tokenOf(credentials)?.sha256,
  ].filter((text) => text !== undefined);
  return knownTextsOf({ route, snapshot, bundleKey: caller?.bundleKey, texts });
}

interface KnownSources extends Pick<Explanation, 'route' | 'snapshot'> {
  readonly bundleKey: BundleKey | undefined;
  /** Further texts that are not secret. */
  readonly texts: readonly string[];
}

export function knownTextsOf({ bundleKey: key, route, snapshot, texts }: KnownSources): KnownTexts {
  return {
    texts: new Set([
      ...texts,
      ...(snapshot === undefined ? [] : [snapshot.authSite, String(snapshot.revision)]),
      ...(route === undefined ? [] : textsOfRoute(route)),
      ...(key === undefined ? [] : textsOfKey(key)),
    ]),
    prefixes: [
      ...(route === undefined ? [] : route.sources.flatMap(prefixesOfRule)),
      ...(key?.kind === 'issuer_key' ? key.issuer.subjectPrefixes : []),
    ],
    segments: new Set(route === undefined ? [] : literalSegments(route.pathTemplate)),
    headers: new Set(route?.signedHeaders),
    hasOrigin: (origin) => snapshot !== undefined && isOriginOf(snapshot, origin),
  };
}

function textsOfRoute(route: Route): readonly string[] {
  return [
    route.routeId,
    route.method,
    route.audience,
    ...route.sources.flatMap(textsOfRule),
    ...[...route.requiredProvenance, ...route.requiredContext].flatMap(textsOfAttribute),
  ];
}

function textsOfRule({ issuer, subject, trustDomain }: SourceRule): readonly string[] {
  return [issuer, trustDomain, ...(subject.kind === 'exact' ? [subject.value] : [])];
}

function prefixesOfRule({ subject }: SourceRule): readonly string[] {
  return subject.kind === 'prefix' ? [subject.value] : [];
}

function textsOfAttribute({ name, allowed }: RequiredAttribute): readonly string[] {
  return [name, ...allowed];
}

function textsOfKey(key: BundleKey): readonly string[] {
  if (key.kind === 'issuer_key') return [key.keyId, key.issuer.issuer, key.issuer.trustDomain];
  const { client, keyId, provenance } = key;
  const { clientId, context, issuer, subject, trustDomain } = client;
  return [keyId, clientId, issuer, trustDomain, subject, ...provenance.values(), ...context.values()];
}

function literalSegments(pathTemplate: string): readonly string[] {
  const template = parsePathTemplate(pathTemplate);
  if (template.kind === 'problem') return [];
  return template.segments.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : []));
}

/** A path without a slash matches no route, so this only tells whether the site has the origin. */
function isOriginOf({ routes }: NonNullable<Explanation['snapshot']>, origin: string): boolean {
  const match = routes.match('GET', origin, '');
  return match.kind === 'no_route' && match.detail !== 'origin';
}
