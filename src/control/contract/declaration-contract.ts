/**
 * Schema of a declaration: one Auth Site with everything that operators configure in it. It is the site file of `ctl apply`.
 * Source: docs/operate/ctl.md "The site file"; docs/operate/control-api.md "Declarations".
 */
import type { Static } from 'typebox';
import Type from 'typebox';
import { MAX_CLIENTS, MAX_GRANTS, MAX_ISSUERS, MAX_ROUTES } from '../../bundle/format/bundle-limits.ts';
import {
  displayText,
  givenId,
  identifier,
  object,
  REASON,
  text,
} from '../../process/http-service/members-contract.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import { NEW_SITE } from './hierarchy-contract.ts';
import { OAUTH_ISSUER_DEFINITION } from './oauth-issuers-contract.ts';
import { BROKER_DEFINITION, GRANT, NEW_CLIENT, ROUTE_DEFINITION, ROUTE_SOURCES } from './routes-contract.ts';
import { ENROLLMENT_POLICY_CREATION, SOURCE_ACTIVATION, SOURCE_CREATION } from './sources-contract.ts';
import { MAX_SOURCE_REVISION } from './vocabulary.ts';

const SITE_FORMAT = 'proofgate.site/v1';
export const MAX_DECLARATION_BYTES = 16 * 1024 * 1024;

export const MAX_SOURCES = 500;
export const MAX_POLICIES = 2000;
export const MAX_TARGETS = 10_000;

const { display_name: siteName, ...siteMembers } = NEW_SITE.properties;
const { resource, access } = GRANT.properties;
const { keys, ...brokerMembers } = BROKER_DEFINITION.properties;
const { display_name: sourceName, kind, ...sourceMembers } = SOURCE_CREATION.properties;
const policyMembers = ENROLLMENT_POLICY_CREATION.properties;

const CLIENT = object(
  {
    ...NEW_CLIENT.properties,
    grants: Type.Optional(
      Type.Array(Type.Object({ resource, access }, { additionalProperties: false }), {
        maxItems: MAX_GRANTS,
        description: 'All grants of the client: one that is left out is removed.',
      }),
    ),
  },
  'DeclaredClient',
);

const ROUTE = object(
  {
    route_id: identifier('Names the route.'),
    ...ROUTE_DEFINITION.properties,
    allowed_sources: ROUTE_SOURCES.properties.allowed_sources,
  },
  'DeclaredRoute',
);

const BROKER = object(
  {
    issuer: identifier('iss of the passports that it signs.'),
    url: Type.Optional(text(2048, 'Base URL of the broker, from which ctl fetches its keys.')),
    ...brokerMembers,
    keys: Type.Optional(keys),
  },
  'DeclaredBroker',
  'keys are pinned when the broker is created, and never changed by a declaration.',
);

const OAUTH_ISSUER = object(
  { issuer: identifier('iss of the access tokens that it signs.'), ...OAUTH_ISSUER_DEFINITION.properties },
  'DeclaredOAuthIssuer',
);

const SOURCE = object(
  {
    name: sourceName,
    kind: Type.Optional(kind),
    ...sourceMembers,
    expected_scope: SOURCE_ACTIVATION.properties.expected_scope,
  },
  'DeclaredSource',
);

const POLICY = object(
  {
    name: policyMembers.display_name,
    source: displayText('A source of the declaration, by name.'),
    client: identifier('A client of the declaration.'),
    approval: policyMembers.approval,
    max_key_lifetime_seconds: policyMembers.max_key_lifetime_seconds,
    verified_subject: policyMembers.verified_subject,
    max_keys_per_token: policyMembers.max_keys_per_token,
  },
  'DeclaredEnrollmentPolicy',
);

export const SITE_DECLARATION = object(
  {
    format: Type.Literal(SITE_FORMAT),
    environment: displayText('Name of the environment; created when it is missing.'),
    fleet: displayText('Name of the fleet; created when it is missing.'),
    site: Type.Object(
      { ...siteMembers, display_name: Type.Optional(siteName) },
      { additionalProperties: false },
    ),
    brokers: Type.Optional(Type.Array(BROKER, { maxItems: MAX_ISSUERS })),
    oauth_issuers: Type.Optional(Type.Array(OAUTH_ISSUER, { maxItems: MAX_ISSUERS })),
    clients: Type.Optional(Type.Array(CLIENT, { maxItems: MAX_CLIENTS })),
    routes: Type.Optional(Type.Array(ROUTE, { maxItems: MAX_ROUTES })),
    sources: Type.Optional(Type.Array(SOURCE, { maxItems: MAX_SOURCES })),
    enrollment_policies: Type.Optional(Type.Array(POLICY, { maxItems: MAX_POLICIES })),
    targets: Type.Optional(
      Type.Array(displayText('Name of a target.'), {
        maxItems: MAX_TARGETS,
        description: 'Names of targets; missing ones are created.',
      }),
    ),
  },
  'SiteDeclaration',
);

export type SiteDeclaration = Static<typeof SITE_DECLARATION>;
export type DeclaredBroker = Static<typeof BROKER>;
export type DeclaredOAuthIssuer = Static<typeof OAUTH_ISSUER>;
export type DeclaredClient = Static<typeof CLIENT>;
export type DeclaredRoute = Static<typeof ROUTE>;
export type DeclaredSource = Static<typeof SOURCE>;
export type DeclaredPolicy = Static<typeof POLICY>;

export const DECLARATION_QUERY = {
  dry_run: Type.Optional(
    Type.Enum(['true', 'false'], { description: 'true: show the steps and change nothing.' }),
  ),
  prune: Type.Optional(
    Type.Enum(['true', 'false'], {
      description:
        'true: remove brokers, OAuth issuers, clients, routes, sources and enrollment policies that the declaration does not name.',
    }),
  ),
  contents: Type.Optional(
    Type.Enum(['true', 'false'], {
      description: 'true, for a dry run: return what a bundle would contain before and after the steps.',
    }),
  ),
  ...REASON,
};

const MEMBER_KINDS = [
  'environment',
  'fleet',
  'site',
  'broker',
  'oauth_issuer',
  'client',
  'grant',
  'route',
  'route_sources',
  'source',
  'enrollment_policy',
  'target',
] as const;
export type MemberKind = (typeof MEMBER_KINDS)[number];

const memberKind = Type.Enum([...MEMBER_KINDS]);
const memberName = Type.String({
  description: 'A grant is its client and its resource, a broker its issuer and trust domain.',
});

const BUNDLE_CONTENT = (description: string) =>
  Type.Unsafe<JsonObject>(Type.Object({}, { additionalProperties: true, description }));

const CONTENTS = object(
  {
    published: Type.Optional(
      object(
        {
          revision: Type.Integer({ minimum: 1, description: 'The newest published revision.' }),
          head: Type.String({ description: 'Its head.' }),
          policy_revision: Type.Integer({
            minimum: 1,
            description: 'The newest revision that changed more than derived keys.',
          }),
        },
        'PublishedPosition',
        'Absent while something other than derived keys is not published yet.',
      ),
    ),
    before: BUNDLE_CONTENT(
      "Members of a bundle as it would be published now, without derived keys and the chain's members.",
    ),
    after: BUNDLE_CONTENT('The members that the steps change.'),
    revoking_sources: Type.Array(givenId('A source.'), {
      description: 'Sources whose removal revokes their derived keys.',
    }),
  },
  'DeclaredContents',
);

const STEP = object(
  {
    verb: Type.Enum(['create', 'change', 'remove', 'activate']),
    kind: memberKind,
    name: memberName,
    changes: Type.Array(Type.String(), { description: 'For people: what changes, one member a line.' }),
    permission: Type.Enum(['operate', 'administer'], { description: 'What the step requires.' }),
  },
  'DeclarationStep',
);

export const DECLARATION_RESULT = object(
  {
    site_id: identifier('The Auth Site.'),
    contents: Type.Optional(CONTENTS),
    dry_run: Type.Boolean({ description: 'Nothing was changed.' }),
    steps: Type.Array(STEP, {
      description: 'In the order in which they were applied. Empty: nothing differs.',
    }),
    unnamed: Type.Array(object({ kind: memberKind, name: memberName }, 'UnnamedMember'), {
      description: 'What the declaration does not name, and what therefore stays.',
    }),
    warnings: Type.Array(
      object(
        {
          code: Type.Enum([
            'skew_raised',
            'broker_without_keys',
            'route_observed',
            'unmatched_observed',
            'replay_per_region',
            'source_unreachable',
            'dpop_unbound',
          ]),
          message: Type.String(),
          denied_seconds: Type.Optional(
            Type.Integer({ minimum: 1, description: 'How long verifiers deny every request.' }),
          ),
        },
        'DeclarationWarning',
      ),
    ),
    activating: Type.Array(
      object(
        {
          source_id: givenId('The source.'),
          revision: Type.Integer({ minimum: 1, maximum: MAX_SOURCE_REVISION }),
          name: displayText('For people.'),
          state: Type.Enum(['activating', 'publishing']),
        },
        'ActivatingSource',
      ),
      { description: 'Source revisions whose activation goes on in the background.' },
    ),
    tokens: Type.Array(
      object(
        {
          target_id: givenId('The target.'),
          name: displayText('For people.'),
          token: Type.String({ description: 'For --control-token-file. Shown only once.' }),
        },
        'NewTargetToken',
      ),
      { description: 'Tokens of the targets that were created.' },
    ),
  },
  'DeclarationResult',
);

export type DeclaredContents = Static<typeof CONTENTS>;
export type DeclarationStep = Static<typeof STEP>;
export type DeclarationResult = Static<typeof DECLARATION_RESULT>;
