/**
 * The site file of `proofgate ctl apply`: the declaration of one Auth Site, kept in version control. This module validates
 * only its schema; Control validates the definitions of routes and brokers against the bundle rules.
 * Source: docs/ctl.md "The site file".
 */

import type { Static } from 'typebox';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { ACCESS_LEVELS } from '../../protocol/access.ts';
import { isCanonicalSubject, isCanonicalSubjectPrefix, SPIFFE_ID_RULE } from '../../protocol/spiffe-id.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import { parseStrictYaml, StrictYamlError } from '../../protocol/strict-yaml.ts';
import { PASSPORT_HEADER_MEMBER } from '../../protocol/wire-names.ts';
import { OperatorError } from './operator-error.ts';

const SITE_FORMAT = 'proofgate.site/v1';

const closed = { additionalProperties: false } as const;
const name = Type.String({ minLength: 1, maxLength: 512 });
const names = Type.Record(Type.String(), name);
const seconds = Type.Integer({ minimum: 1 });

const grant = Type.Object({ resource: name, access: Type.Enum([...ACCESS_LEVELS]) }, closed);

const client = Type.Object(
  {
    client_id: name,
    subject: name,
    context: Type.Optional(names),
    grants: Type.Optional(Type.Array(grant)),
  },
  closed,
);

/** Control validates the other members. */
const broker = Type.Object(
  {
    issuer: name,
    trust_domain: name,
    /** Where `ctl broker-keys refresh` fetches keys. Bundles do not contain it. */
    url: Type.Optional(name),
    subject_prefixes: Type.Optional(Type.Unknown()),
    /** Pinned when the broker is created, and never changed by `apply`. */
    keys: Type.Optional(Type.Array(Type.Unknown())),
  },
  { additionalProperties: true },
);

/** As in a bundle, with its source set. */
const route = Type.Object(
  {
    route_id: name,
    method: name,
    path_template: name,
    audience: name,
    freshness_class: name,
    max_staleness_seconds: Type.Optional(seconds),
    resource: Type.Optional(name),
    access: Type.Optional(Type.Enum([...ACCESS_LEVELS])),
    origins: Type.Optional(Type.Array(name)),
    signed_headers: Type.Optional(Type.Array(name)),
    body: Type.Optional(Type.Enum(['bound', 'unbound'])),
    upgrade: Type.Optional(Type.Enum(['websocket'])),
    required_provenance: Type.Optional(Type.Record(Type.String(), Type.Array(name))),
    required_context: Type.Optional(Type.Record(Type.String(), Type.Array(name))),
    passport_header: Type.Optional(Type.Enum([PASSPORT_HEADER_MEMBER])),
    forward_authorization: Type.Optional(Type.Boolean()),
    allowed_sources: Type.Array(
      Type.Object(
        {
          issuer: name,
          trust_domain: name,
          subject_exact: Type.Optional(name),
          subject_prefix: Type.Optional(Type.String()),
          required_key_binding: Type.Enum(['software', 'attested_workload']),
        },
        closed,
      ),
      { minItems: 1 },
    ),
  },
  closed,
);

const source = Type.Object(
  {
    name,
    kind: Type.Optional(Type.Enum(['oidc_jwks'])),
    issuer: name,
    jwks_uri: name,
    audience: name,
    /** Scope that the validation must detect; otherwise the source is not activated. */
    expected_scope: name,
    on_suspend: Type.Optional(Type.Enum(['keep', 'revoke'])),
    on_retire: Type.Optional(Type.Enum(['keep', 'revoke'])),
  },
  closed,
);

const policy = Type.Object(
  {
    name,
    /** Name of a source of this file. */
    source: name,
    client: name,
    approval: Type.Enum(['automatic', 'manual']),
    max_key_lifetime_seconds: seconds,
    verified_subject: name,
    max_keys_per_token: Type.Optional(seconds),
  },
  closed,
);

const SITE_FILE = Type.Object(
  {
    format: Type.Literal(SITE_FORMAT),
    environment: name,
    fleet: name,
    site: Type.Object(
      {
        site_id: name,
        display_name: Type.Optional(name),
        trust_domain: name,
        issuer_url: name,
        origins: Type.Array(name, { minItems: 1 }),
        skew_seconds: Type.Optional(seconds),
        single_verifier: Type.Optional(Type.Boolean()),
        bundle_lifetime_seconds: Type.Optional(seconds),
        source_capacity: Type.Optional(seconds),
      },
      closed,
    ),
    brokers: Type.Optional(Type.Array(broker)),
    clients: Type.Optional(Type.Array(client)),
    routes: Type.Optional(Type.Array(route)),
    sources: Type.Optional(Type.Array(source)),
    enrollment_policies: Type.Optional(Type.Array(policy)),
    /** Names. */
    targets: Type.Optional(Type.Array(name)),
  },
  closed,
);

export type SiteFile = Static<typeof SITE_FILE>;
export type SiteBroker = Static<typeof broker>;
export type SiteClient = Static<typeof client>;
export type SiteRoute = Static<typeof route>;
export type SiteSource = Static<typeof source>;
export type SitePolicy = Static<typeof policy>;

const shape = Compile(SITE_FILE);

/**
 * Reads YAML or JSON.
 * @param fileName for error messages
 * @throws OperatorError `site_file_invalid`, naming file and place
 */
export function parseSiteFile(text: string, fileName: string): SiteFile {
  const value = readYaml(text, fileName);
  if (!shape.Check(value)) {
    throw invalid(fileName, shapeProblem(shape.Errors(value)));
  }
  refuseRepeated(value, fileName);
  refuseUnknownReferences(value, fileName);
  refuseOddSubjects(value, fileName);
  return value;
}

function readYaml(text: string, fileName: string): unknown {
  try {
    return parseStrictYaml(text);
  } catch (error) {
    throw error instanceof StrictYamlError ? invalid(fileName, error.message) : error;
  }
}

/** The first fault and its place. */
function shapeProblem(errors: readonly TLocalizedValidationError[]): string {
  // The validator reports a `boolean` fault beside each `additionalProperties` fault.
  const error = errors.find(({ keyword }) => keyword !== 'boolean');
  if (error === undefined) return 'the file has another shape';
  const place = error.instancePath;
  switch (error.keyword) {
    case 'additionalProperties':
      return `${place}/${error.params.additionalProperties[0]} is no member of a site file`;
    case 'required':
      return `${place}/${error.params.requiredProperties[0]} is missing`;
    case 'const':
      return `${place} must be ${String(error.params.allowedValue)}`;
    case 'enum':
      return `${place} must be ${error.params.allowedValues.map(String).join(' or ')}`;
    default:
      return `${place === '' ? 'the file' : place} ${error.message}`;
  }
}

/** A broker's name in plans: its issuer and its trust domain. */
export function brokerName({ issuer, trust_domain: trustDomain }: JsonObject): string {
  return `${String(issuer)} ${String(trustDomain)}`;
}

/** Rejects duplicate names. */
function refuseRepeated(file: SiteFile, fileName: string): void {
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ['brokers', (file.brokers ?? []).map(brokerName)],
    ['clients', (file.clients ?? []).map(({ client_id }) => client_id)],
    ['routes', (file.routes ?? []).map(({ route_id }) => route_id)],
    ['sources', (file.sources ?? []).map((each) => each.name)],
    ['enrollment_policies', (file.enrollment_policies ?? []).map((each) => each.name)],
    ['targets', file.targets ?? []],
  ];
  for (const [list, all] of lists) {
    const repeated = all.find((each, index) => all.indexOf(each) !== index);
    if (repeated !== undefined) throw invalid(fileName, `/${list} names ${JSON.stringify(repeated)} twice`);
  }
}

function refuseUnknownReferences(file: SiteFile, fileName: string): void {
  const sources = new Set(file.sources?.map((each) => each.name));
  const clients = new Set(file.clients?.map(({ client_id }) => client_id));
  for (const [index, each] of (file.enrollment_policies ?? []).entries()) {
    const place = `/enrollment_policies/${index}`;
    if (!sources.has(each.source)) {
      throw invalid(
        fileName,
        `${place}/source is ${JSON.stringify(each.source)}, which /sources does not name`,
      );
    }
    if (!clients.has(each.client)) {
      throw invalid(
        fileName,
        `${place}/client is ${JSON.stringify(each.client)}, which /clients does not name`,
      );
    }
  }
}

/** Rejects subjects that are not canonical: verifiers would match no caller with them. */
function refuseOddSubjects({ brokers = [], clients = [], routes = [] }: SiteFile, fileName: string): void {
  const odd = [
    ...clients.flatMap(({ subject }, i) => (isCanonicalSubject(subject) ? [] : [`/clients/${i}/subject`])),
    ...routes.flatMap(({ allowed_sources: sources }, i) =>
      sources.flatMap(({ subject_exact: exact = '', subject_prefix: prefix = '' }, j) => [
        ...(isCanonicalSubject(exact) ? [] : [`/routes/${i}/allowed_sources/${j}/subject_exact`]),
        ...(isCanonicalSubjectPrefix(prefix) ? [] : [`/routes/${i}/allowed_sources/${j}/subject_prefix`]),
      ]),
    ),
    ...brokers.flatMap((broker, i) => oddPrefixes(broker).map((j) => `/brokers/${i}/subject_prefixes/${j}`)),
  ];
  if (odd[0] !== undefined) throw invalid(fileName, `${odd[0]} is not ${SPIFFE_ID_RULE}`);
}

function oddPrefixes({ subject_prefixes: prefixes }: SiteBroker): readonly number[] {
  if (!Array.isArray(prefixes)) return [];
  return prefixes.flatMap((prefix: unknown, i) =>
    typeof prefix === 'string' && !isCanonicalSubjectPrefix(prefix) ? [i] : [],
  );
}

function invalid(fileName: string, problem: string): OperatorError {
  return new OperatorError('usage', 'site_file_invalid', `${fileName}: ${problem}`);
}

/** Control's current configuration of a site, as far as a site file can declare it. Records are the API's views. */

export interface CurrentSite {
  readonly environmentId: string | undefined;
  readonly fleetId: string | undefined;
  readonly site: JsonObject | undefined;
  /** By {@link brokerName}. */
  readonly brokers: Records;
  /** By client_id. */
  readonly clients: Records;
  /** Access by client_id, then by resource. */
  readonly grants: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** By route_id. */
  readonly routes: Records;
  /** Views of source sets, by route_id. */
  readonly routeSources: Records;
  /** By display name, with revisions. */
  readonly sources: Records;
  /** By display name. */
  readonly policies: Records;
  /** By name; attached ones only. */
  readonly targets: Records;
}

export type Records = ReadonlyMap<string, JsonObject>;

export const NOTHING: CurrentSite = {
  environmentId: undefined,
  fleetId: undefined,
  site: undefined,
  brokers: new Map(),
  clients: new Map(),
  grants: new Map(),
  routes: new Map(),
  routeSources: new Map(),
  sources: new Map(),
  policies: new Map(),
  targets: new Map(),
};
