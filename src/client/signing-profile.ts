/**
 * A signing profile file: who a key signs as, and for which routes.
 * Source: docs/cli.md "Signing profiles"; specification "Signing profile".
 */

import type { KeyBinding } from '../protocol/identifiers.ts';
import {
  isIdentifier,
  isKeyBinding,
  isKeyId,
  isMethod,
  isSignableHeaderName,
} from '../protocol/identifiers.ts';
import { type PathTemplate, parsePathTemplate } from '../protocol/path-template.ts';
import { parseOrigin } from '../protocol/request-target.ts';
import { isJsonObject, type JsonObject } from '../protocol/strict-json.ts';
import { ClientError } from './client-error.ts';
import { parseStrictYaml, StrictYamlError } from './strict-yaml.ts';

export const SIGNING_PROFILE_FORMAT = 'proofgate.signing-profile/v1';

/** The key's signing coordinates: what its passports and transcripts say about it. */
export interface SigningCoordinates {
  readonly authSite: string;
  /** `kid` of the passports that the key signs itself; a broker's passport brings its own. */
  readonly keyId: string | undefined;
  readonly issuer: string;
  readonly trustDomain: string;
  readonly subject: string;
  readonly keyBinding: KeyBinding;
}

/** What one route wants signed. */
export interface RouteProfile {
  /** Unique in its file; the route ID unless the file says otherwise. */
  readonly name: string;
  readonly routeId: string;
  readonly method: string;
  readonly template: PathTemplate;
  readonly audience: string;
  /** `scheme://authority`, canonical; at least one. */
  readonly origins: readonly string[];
  /** Headers that every transcript must sign: lower case, sorted, each once. */
  readonly signedHeaders: readonly string[];
  readonly body: 'bound' | 'unbound';
}

export interface SigningProfiles {
  readonly coordinates: SigningCoordinates;
  /** At least one. */
  readonly profiles: readonly RouteProfile[];
}

/**
 * Reads YAML or JSON.
 * @param fileName stands in error messages
 * @throws ClientError `profile_invalid`, naming file and place, such as `profiles[0].method`
 */
export function parseSigningProfiles(text: string, fileName: string): SigningProfiles {
  const root = new Reader(fileName, '', parseYaml(text, fileName));
  root.onlyMembers(FILE_MEMBERS);
  root.optional('format', (value) => value === SIGNING_PROFILE_FORMAT, `${SIGNING_PROFILE_FORMAT}`);
  const coordinates = readCoordinates(root);
  const profiles = root.items('profiles').map((item) => readRouteProfile(item));
  if (profiles.length === 0) root.fail('profiles', 'is empty');
  refuseDuplicates(root, profiles);
  return { coordinates, profiles };
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
];
const IDENTIFIER_RULE = '1 to 512 visible ASCII characters';

function parseYaml(text: string, fileName: string): unknown {
  try {
    return parseStrictYaml(text);
  } catch (error) {
    if (error instanceof StrictYamlError) {
      throw new ClientError('profile_invalid', `${fileName}: ${error.message}`);
    }
    throw error;
  }
}

function readCoordinates(root: Reader): SigningCoordinates {
  return {
    authSite: root.required('auth_site', isIdentifier, IDENTIFIER_RULE),
    keyId: root.optional('key_id', isKeyId, '1 to 128 visible ASCII characters'),
    issuer: root.required('issuer', isIdentifier, IDENTIFIER_RULE),
    trustDomain: root.required('trust_domain', isIdentifier, IDENTIFIER_RULE),
    subject: root.required('subject', isIdentifier, IDENTIFIER_RULE),
    keyBinding: root.required('key_binding', isKeyBinding, 'software or attested_workload'),
  };
}

function readRouteProfile(item: Reader): RouteProfile {
  item.onlyMembers(PROFILE_MEMBERS);
  const routeId = item.required('route_id', isIdentifier, IDENTIFIER_RULE);
  const template = parsePathTemplate(item.required('path_template', isString, 'a path template'));
  if (template.kind === 'problem') {
    return item.fail('path_template', `${template.text}; a template reads /v1/orders/{order_id}`);
  }
  return {
    name: item.optional('name', isIdentifier, IDENTIFIER_RULE) ?? routeId,
    routeId,
    method: item.required('method', isMethodToken, 'an HTTP method'),
    template,
    audience: item.required('audience', isIdentifier, IDENTIFIER_RULE),
    origins: item.texts('origins', isOrigin, 'scheme://authority in canonical form', 1),
    signedHeaders: [
      ...item.texts('signed_headers', isSignable, 'a lower-case header name that may be signed', 0),
    ].sort(),
    body: item.optional('body', isBodyRule, 'bound or unbound') ?? 'bound',
  };
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function isMethodToken(value: unknown): value is string {
  return typeof value === 'string' && isMethod(value);
}

function isOrigin(value: unknown): value is string {
  return typeof value === 'string' && parseOrigin(value) !== undefined;
}

function isSignable(value: unknown): value is string {
  return typeof value === 'string' && isSignableHeaderName(value);
}

function isBodyRule(value: unknown): value is 'bound' | 'unbound' {
  return value === 'bound' || value === 'unbound';
}

function refuseDuplicates(root: Reader, profiles: readonly RouteProfile[]): void {
  for (const [i, profile] of profiles.entries()) {
    const others = profiles.slice(0, i);
    if (others.some(({ routeId }) => routeId === profile.routeId)) {
      root.fail(`profiles[${i}].route_id`, 'stands in the file twice');
    }
    if (others.some(({ name }) => name === profile.name)) {
      root.fail(`profiles[${i}].name`, 'stands in the file twice');
    }
  }
}

/** One object of the file, with the place where it stands. */
class Reader {
  readonly #fileName: string;
  readonly #place: string;
  readonly #object: JsonObject;

  constructor(fileName: string, place: string, value: unknown) {
    this.#fileName = fileName;
    this.#place = place;
    if (!isJsonObject(value)) this.fail('', 'must be a mapping');
    this.#object = value;
  }

  onlyMembers(known: readonly string[]): void {
    const unknown = Object.keys(this.#object).find((member) => !known.includes(member));
    if (unknown !== undefined) this.fail(unknown, 'is not a member of this format');
  }

  required<T>(member: string, accepts: (value: unknown) => value is T, rule: string): T {
    if (!Object.hasOwn(this.#object, member)) this.fail(member, 'is missing');
    const value = this.#object[member];
    if (!accepts(value)) this.fail(member, `must be ${rule}`);
    return value;
  }

  optional<T>(member: string, accepts: (value: unknown) => value is T, rule: string): T | undefined {
    return Object.hasOwn(this.#object, member) ? this.required(member, accepts, rule) : undefined;
  }

  items(member: string): readonly Reader[] {
    const values = this.required(member, isArray, 'a list');
    return values.map((value, i) => new Reader(this.#fileName, this.#at(`${member}[${i}]`), value));
  }

  /** A list of texts, each once; absent is the empty list. */
  texts(
    member: string,
    accepts: (value: unknown) => value is string,
    rule: string,
    minCount: number,
  ): readonly string[] {
    const values = this.optional(member, isArray, 'a list') ?? [];
    if (values.length < minCount) this.fail(member, 'is missing or empty');
    return values.map((value, i) => {
      if (!accepts(value)) this.fail(`${member}[${i}]`, `must be ${rule}`);
      if (values.indexOf(value) !== i) this.fail(`${member}[${i}]`, 'stands in the list twice');
      return value;
    });
  }

  fail(member: string, problem: string): never {
    const place = this.#at(member);
    throw new ClientError(
      'profile_invalid',
      `${this.#fileName}: ${place === '' ? '' : `${place} `}${problem}`,
    );
  }

  #at(member: string): string {
    return this.#place === '' || member === '' ? `${this.#place}${member}` : `${this.#place}.${member}`;
  }
}

function isArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
