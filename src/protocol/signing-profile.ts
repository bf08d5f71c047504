/**
 * Reads signing profiles: the identity as which a key signs, and the routes for which it signs.
 * Source: docs/operate/cli.md "Signing profiles"; specification "Signing profile".
 */

import type { BodyRule } from './body-binding.ts';
import { ClientError } from './client-error.ts';
import type { KeyBinding } from './identifiers.ts';
import { isIdentifier, isKeyBinding, isKeyId, isMethod, isSignableHeaderName } from './identifiers.ts';
import { ObjectReader, oneOf, textThat } from './object-reader.ts';
import { type PathTemplate, parsePathTemplate } from './path-template.ts';
import { parseOrigin } from './request-target.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE } from './spiffe-id.ts';
import { PASSPORT_HEADER_MEMBER, type PassportHeader, passportHeaderOf } from './wire-names.ts';

const SIGNING_PROFILE_FORMAT = 'proofgate.signing-profile/v1';

/** The key's signing coordinates, which its passports and transcripts contain. */
export interface SigningCoordinates {
  readonly authSite: string;
  /** `kid` of passports that the key signs itself; a broker's passport has its own. */
  readonly keyId: string | undefined;
  readonly issuer: string;
  readonly trustDomain: string;
  readonly subject: string;
  readonly keyBinding: KeyBinding;
}

/** The parts of a request to one route that must be signed. */
export interface RouteProfile {
  /** Unique in its file; the route ID by default. */
  readonly name: string;
  readonly routeId: string;
  readonly method: string;
  readonly template: PathTemplate;
  readonly audience: string;
  /** At least one `scheme://authority`, canonical. */
  readonly origins: readonly string[];
  /** Headers that every transcript must sign: lower case, sorted, distinct. */
  readonly signedHeaders: readonly string[];
  readonly body: BodyRule;
  /** Header that carries the passport. */
  readonly passportHeader: PassportHeader;
}

export interface SigningProfiles {
  readonly coordinates: SigningCoordinates;
  /** At least one from a file; an enrolled key may have none. */
  readonly profiles: readonly RouteProfile[];
}

/**
 * Reads a parsed document.
 * @param fileName for error messages
 * @throws ClientError `profile_invalid`, naming file and place, such as `profiles[0].method`
 */
export function readSigningProfiles(document: unknown, fileName: string): SigningProfiles {
  const root = new ObjectReader(document, '', (place, problem) => invalid(fileName, place, problem));
  root.rejectUnknownMembers(FILE_MEMBERS);
  root.optional('format', (value) => value === SIGNING_PROFILE_FORMAT, `${SIGNING_PROFILE_FORMAT}`);
  const coordinates = readCoordinates(root);
  const profiles = root.items('profiles').map((item) => {
    item.rejectUnknownMembers(PROFILE_MEMBERS);
    return readRouteProfile(item);
  });
  if (profiles.length === 0) root.fail('profiles', 'is empty');
  refuseDuplicates(root, 'profiles', profiles);
  return { coordinates, profiles };
}

function invalid(fileName: string, place: string, problem: string): ClientError {
  return new ClientError('profile_invalid', `${fileName}: ${place === '' ? '' : `${place} `}${problem}`);
}

const FILE_MEMBERS = [
  'format',
  'auth_site',
  'key_id',
  'issuer',
  'trust_domain',
  'subject',
  'key_binding',
  'profiles',
];
const PROFILE_MEMBERS = [
  'name',
  'route_id',
  'method',
  'path_template',
  'audience',
  'origins',
  'signed_headers',
  'body',
  'passport_header',
];
const IDENTIFIER_RULE = '1 to 512 visible ASCII characters';

function readCoordinates(root: ObjectReader): SigningCoordinates {
  return {
    authSite: root.required('auth_site', isIdentifier, IDENTIFIER_RULE),
    keyId: root.optional('key_id', isKeyId, '1 to 128 visible ASCII characters'),
    issuer: root.required('issuer', isIdentifier, IDENTIFIER_RULE),
    trustDomain: root.required('trust_domain', isIdentifier, IDENTIFIER_RULE),
    subject: root.required('subject', isSubject, `${IDENTIFIER_RULE}; with spiffe: ${SPIFFE_ID_RULE}`),
    keyBinding: root.required('key_binding', isKeyBinding, 'software or attested_workload'),
  };
}

const isString = textThat(() => true);
const isOrigin = textThat((text) => parseOrigin(text) !== undefined);

/** Reads the known members and ignores others. @throws the reader's error */
export function readRouteProfile(item: ObjectReader): RouteProfile {
  const routeId = item.required('route_id', isIdentifier, IDENTIFIER_RULE);
  const template = parsePathTemplate(item.required('path_template', isString, 'a path template'));
  if (template.kind === 'problem') {
    return item.fail('path_template', `${template.text}; a template reads /v1/orders/{order_id}`);
  }
  const passportHeader = passportHeaderOf(
    item.optional('passport_header', oneOf([PASSPORT_HEADER_MEMBER]), PASSPORT_HEADER_MEMBER),
  );
  return {
    name: item.optional('name', isIdentifier, IDENTIFIER_RULE) ?? routeId,
    routeId,
    method: item.required('method', textThat(isMethod), 'an HTTP method'),
    template,
    audience: item.required('audience', isIdentifier, IDENTIFIER_RULE),
    origins: item.texts('origins', isOrigin, 'scheme://authority in canonical form', 1),
    signedHeaders: [
      ...item.texts(
        'signed_headers',
        textThat((name) => isSignableHeaderName(name, passportHeader)),
        'a lower-case header name that may be signed',
        0,
      ),
    ].sort(),
    body: item.optional('body', oneOf<BodyRule>(['bound', 'unbound']), 'bound or unbound') ?? 'bound',
    passportHeader,
  };
}

function isSubject(value: unknown): value is string {
  return isIdentifier(value) && isCanonicalSubject(value);
}

/** @param list the member that contains them */
export function refuseDuplicates(root: ObjectReader, list: string, profiles: readonly RouteProfile[]): void {
  for (const [i, profile] of profiles.entries()) {
    const others = profiles.slice(0, i);
    if (others.some(({ routeId }) => routeId === profile.routeId)) {
      root.fail(`${list}[${i}].route_id`, 'is there twice');
    }
    if (others.some(({ name }) => name === profile.name)) {
      root.fail(`${list}[${i}].name`, 'is there twice');
    }
  }
}
