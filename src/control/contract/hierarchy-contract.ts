/** Schemas of environments, fleets and Auth Sites. Source: specification "Other resources"; docs/operate/control.md. */

import type { Static } from 'typebox';
import Type from 'typebox';
import { MAX_FLOOR_REVISION } from '../../bundle/format/bundle-limits.ts';
import {
  displayText,
  givenId,
  IDENTIFIER_PATTERN,
  identifier,
  moment,
  object,
  SITE_PATH,
  shownText,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';
import { DEFAULT_SKEW_SECONDS, MAX_SKEW_SECONDS } from '../../protocol/limits.ts';
import { TIME_PATTERN } from '../../protocol/rfc3339.ts';
import { TRUST_DOMAIN_PATTERN } from '../../protocol/spiffe-id.ts';
import { DEFAULT_SOURCE_CAPACITY } from './vocabulary.ts';

export const NAMED = object({ name: displayText('For people; unique among its siblings.') }, 'Named');

export const ENVIRONMENT = object(
  { environment_id: givenId('Names the environment.'), name: shownText('For people.'), ...VERSIONED },
  'Environment',
);

export const FLEET = object(
  {
    fleet_id: givenId('Names the fleet.'),
    environment_id: givenId('The environment that it belongs to.'),
    name: shownText('For people.'),
    ...VERSIONED,
  },
  'Fleet',
);

const MIN_BUNDLE_LIFETIME_SECONDS = 300;
const MAX_BUNDLE_LIFETIME_SECONDS = 366 * 86_400;
export const DEFAULT_BUNDLE_LIFETIME_SECONDS = 30 * 86_400;
const MAX_SOURCE_CAPACITY = 1000;

const siteId = Type.String({
  pattern: IDENTIFIER_PATTERN,
  description: 'Names the Auth Site in transcripts and bundles. Fixed.',
});
const trustDomain = Type.String({
  pattern: TRUST_DOMAIN_PATTERN,
  description: 'trust_domain of passports of derived keys. Fixed: living keys name it.',
});
const issuerUrl = Type.String({
  pattern: '^https?://[!-~]{1,500}$',
  description: 'iss of passports of derived keys. Fixed, and of one site only.',
});
export const OBSERVATION_END = Type.Optional(
  Type.String({
    pattern: TIME_PATTERN,
    description:
      'When the observation ends: in the future, at most 30 days ahead. Required with observe. RFC 3339, UTC, whole seconds.',
  }),
);

const SITE_SETTINGS = {
  display_name: displayText('For people.'),
  origins: Type.Array(Type.String({ minLength: 8, maxLength: 520 }), {
    minItems: 1,
    maxItems: 1000,
    uniqueItems: true,
    description: 'scheme://authority that requests may be signed for, in canonical form.',
  }),
  skew_seconds: Type.Integer({
    minimum: 1,
    maximum: MAX_SKEW_SECONDS,
    description: `Maximum clock skew. Default: ${DEFAULT_SKEW_SECONDS}. A larger one makes verifiers deny every request for twice this time plus one second, and longer with Redis failover.`,
  }),
  single_verifier: Type.Boolean({
    description:
      'One verifier process serves the site: the embedded replay store is allowed. Default: false.',
  }),
  bundle_lifetime_seconds: Type.Integer({
    minimum: MIN_BUNDLE_LIFETIME_SECONDS,
    maximum: MAX_BUNDLE_LIFETIME_SECONDS,
    description: `Lifetime of a bundle. Default: ${DEFAULT_BUNDLE_LIFETIME_SECONDS}.`,
  }),
  source_capacity: Type.Integer({
    minimum: 1,
    maximum: MAX_SOURCE_CAPACITY,
    description: `Slots for Trust Anchor Sources. Default: ${DEFAULT_SOURCE_CAPACITY}.`,
  }),
  replay_stores: Type.Enum(['one', 'per_region'], {
    description:
      'per_region: verifiers use several replay stores on purpose, each of which accepts a proof once, and Control does not warn of it. Default: one.',
  }),
  unmatched: Type.Enum(['deny', 'observe'], {
    description:
      'observe: requests that no route matches pass, without identity, until unmatched_until, where the verifier allows it. Default: deny.',
  }),
};

const { display_name, origins, ...withDefaults } = SITE_SETTINGS;

export const NEW_SITE = object(
  {
    site_id: siteId,
    trust_domain: trustDomain,
    issuer_url: issuerUrl,
    display_name,
    origins,
    skew_seconds: Type.Optional(withDefaults.skew_seconds),
    single_verifier: Type.Optional(withDefaults.single_verifier),
    bundle_lifetime_seconds: Type.Optional(withDefaults.bundle_lifetime_seconds),
    source_capacity: Type.Optional(withDefaults.source_capacity),
    replay_stores: Type.Optional(withDefaults.replay_stores),
    unmatched: Type.Optional(withDefaults.unmatched),
    unmatched_until: OBSERVATION_END,
  },
  'NewSite',
  undefined,
  {
    site_id: 'shop-eu-1',
    display_name: 'Shop, Europe',
    trust_domain: 'shop.example',
    issuer_url: 'https://control.shop.example/sites/shop-eu-1',
    origins: ['https://api.shop.example'],
  },
);

export const SITE_CHANGE = Type.Partial(Type.Object({ ...SITE_SETTINGS, unmatched_until: OBSERVATION_END }), {
  additionalProperties: false,
  minProperties: 1,
  $id: 'SiteChange',
  description: 'Absent members keep their values. unmatched and unmatched_until are changed together.',
});

export const SITE = object(
  {
    site_id: siteId,
    environment_id: givenId('The environment.'),
    fleet_id: givenId('The fleet that it belongs to.'),
    trust_domain: trustDomain,
    issuer_url: issuerUrl,
    ...SITE_SETTINGS,
    display_name: shownText('For people.'),
    unmatched_until: OBSERVATION_END,
    ...VERSIONED,
  },
  'Site',
);

export const SITE_FLOOR_RAISE = object(
  {
    above_revision: Type.Integer({
      minimum: 1,
      maximum: MAX_FLOOR_REVISION,
      description: 'All later publications have a higher revision. It cannot be lowered.',
    }),
  },
  'SiteFloorRaise',
);

export const SITE_FLOOR = object(
  {
    site_id: siteId,
    revision: Type.Integer({ minimum: 0, description: 'The newest published; 0 before the first.' }),
    floor_revision: Type.Integer({ minimum: 0, description: 'The next revision is also above this one.' }),
  },
  'SiteFloor',
);

export const ENVIRONMENT_PATH = { environment_id: identifier('The environment.') };
export const FLEET_PATH = { fleet_id: identifier('The fleet.') };

export type EnvironmentView = Static<typeof ENVIRONMENT>;
export type FleetView = Static<typeof FLEET>;
export type SiteView = Static<typeof SITE>;
export type SiteFloorView = Static<typeof SITE_FLOOR>;
export type NewSite = Static<typeof NEW_SITE>;
export type SiteChange = Static<typeof SITE_CHANGE>;

/** Schemas of a site's signing keys: the public halves, which verifiers pin. */
const purpose = Type.Enum(['bundle', 'freshness', 'receipt'], {
  description:
    'bundle: bundles, deltas and links (--bundle-key). freshness: statements (--freshness-key). receipt: revocation receipts.',
});

export const SIGNING_KEY = object(
  {
    signing_key_id: givenId('Identifies the key.'),
    purpose,
    state: Type.Enum(['active', 'retiring', 'retired']),
    thumbprint: Type.String({ description: 'kid of its signatures: RFC 7638, SHA-256, base64url.' }),
    jwk: Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: Type.String({ description: 'base64url, 32 bytes.' }),
    }),
    created_at: moment('When it was created.'),
    retire_at: Type.Optional(moment('When a retiring key stops signing.')),
  },
  'SigningKey',
);

export const SIGNING_KEYS = object({ items: Type.Array(SIGNING_KEY) }, 'SigningKeys');

const MAX_RETIRING_SECONDS = 90 * 86_400;

export const SIGNING_KEY_ROTATION = object(
  {
    purpose,
    retiring_seconds: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: MAX_RETIRING_SECONDS,
        description: 'How long the previous key also signs. Default: 86400.',
      }),
    ),
  },
  'SigningKeyRotation',
);

export const SIGNING_KEY_PATH = { ...SITE_PATH, signing_key_id: givenId('The signing key.') };

export const SIGNING_KEY_RETIREMENT = object(
  {
    retiring_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_RETIRING_SECONDS,
        description:
          'How long the key still signs, at most its remaining time. Default: 0, which retires it now.',
      }),
    ),
  },
  'SigningKeyRetirement',
);

export type SigningKeyResource = Static<typeof SIGNING_KEY>;
export type SigningKeyRotation = Static<typeof SIGNING_KEY_ROTATION>;
export type SigningKeyRetirement = Static<typeof SIGNING_KEY_RETIREMENT>;
