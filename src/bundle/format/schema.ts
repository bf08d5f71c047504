/**
 * Schemas of a bundle's content and of statements about it. They are the single source of the types and, by
 * `make schemas`, of the files in docs/reference/schema/, which validate documents at run time. The compiler checks rules across
 * members, in `compile*.ts`.
 * Source: docs/design/bundle.md "Content".
 */
import Type, { type Static } from 'typebox';
import { DEFAULT_SKEW_SECONDS, MAX_SKEW_SECONDS } from '../../protocol/limits.ts';
import {
  BUNDLE_FORMAT,
  MAX_BLOCKED,
  MAX_CLIENTS,
  MAX_INLINE_DERIVED_KEYS,
  MAX_ISSUERS,
  MAX_KEYS_PER_SHARD,
  MAX_ROUTES,
} from './bundle-limits.ts';
import {
  authSite,
  blockedCaller,
  client,
  derivedKey,
  identifier,
  issuer,
  keyId,
  keyShard,
  oauthIssuer,
  observe,
  origins,
  type Readable,
  revision,
  route,
  routeSources,
  sha256,
  time,
  trustAnchorSource,
} from './schema-entries.ts';

export type {
  AllowedSourceContent,
  BlockedCallerContent,
  ClientContent,
  DerivedKeyContent,
  IssuerContent,
  IssuerKeyContent,
  KeyShardContent,
  OAuthIssuerContent,
  RouteContent,
  RouteSourcesContent,
} from './schema-entries.ts';
/** The payload of `bundle.jws`. */
export const BUNDLE_CONTENT = Type.Object(
  {
    format: Type.Literal(BUNDLE_FORMAT),
    auth_site: authSite,
    revision,
    previous_head: Type.Optional(sha256('Head of the document before; absent in the first.')),
    issued_at: time('When the content was the latest.'),
    expires_at: time('The content is of no use from this moment on.'),
    skew_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_SKEW_SECONDS,
        default: DEFAULT_SKEW_SECONDS,
        description: 'How far clocks may be apart.',
      }),
    ),
    origins: origins('Scheme and authority that requests may be signed for, in canonical form.'),
    single_verifier: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'One verifier process serves the site: the embedded replay store is allowed.',
      }),
    ),
    unmatched: observe(
      'Whether requests that no route matches pass, without identity, until unmatched_until.',
    ),
    unmatched_until: Type.Optional(
      time('When that ends, at most 30 days after issued_at. Required with unmatched.'),
    ),
    trust_anchor_sources: Type.Optional(Type.Array(trustAnchorSource, { maxItems: 1000 })),
    issuers: Type.Optional(Type.Array(issuer, { maxItems: MAX_ISSUERS })),
    oauth_issuers: Type.Optional(Type.Array(oauthIssuer, { maxItems: MAX_ISSUERS })),
    blocked: Type.Optional(Type.Array(blockedCaller, { maxItems: MAX_BLOCKED })),
    clients: Type.Optional(Type.Array(client, { maxItems: MAX_CLIENTS })),
    derived_keys: Type.Optional(Type.Array(derivedKey, { maxItems: MAX_INLINE_DERIVED_KEYS })),
    key_shards: Type.Optional(Type.Array(keyShard, { maxItems: 100 })),
    routes: Type.Array(route, { maxItems: MAX_ROUTES }),
    route_sources: Type.Array(routeSources, { maxItems: MAX_ROUTES }),
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Proofgate trust and policy bundle',
    description: 'Content of bundle.jws. Rules beyond the shape are in docs/design/bundle.md.',
    additionalProperties: false,
  },
);

/** One line of a key shard. */
export const DERIVED_KEY = derivedKey;

/** The payload of `freshness.jws`: this revision with this head was the latest at `as_of`. */
export const FRESHNESS_CONTENT = Type.Object(
  {
    auth_site: authSite,
    revision,
    head: sha256('Names the revision and all before it.'),
    as_of: time('When that revision was the latest.'),
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Proofgate freshness statement',
    description: 'Content of freshness.jws.',
    additionalProperties: false,
  },
);

/** The payload of a break-glass statement: between `from` and `until`, this revision with this head may be of any age. */
export const BREAK_GLASS_CONTENT = Type.Object(
  {
    auth_site: authSite,
    revision,
    head: sha256('Names the revision and all before it.'),
    from: time('When the statement begins to apply.'),
    until: time('When it ends, at most 24 hours after from.'),
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Proofgate break-glass statement',
    description: 'Content of the file that --break-glass-file names.',
    additionalProperties: false,
  },
);

/** The payload of `delta-<revision>.jws`: clients and derived keys that changed since the previous revision. */
export const DELTA_CONTENT = Type.Object(
  {
    auth_site: authSite,
    revision,
    previous_head: sha256('Head of the document before.'),
    issued_at: time('When the content was the latest.'),
    clients_put: Type.Array(client, { maxItems: MAX_CLIENTS }),
    clients_removed: Type.Array(identifier('client_id.'), { maxItems: MAX_CLIENTS }),
    keys_put: Type.Array(derivedKey, { maxItems: MAX_INLINE_DERIVED_KEYS }),
    keys_removed: Type.Array(keyId('key_id.'), { maxItems: MAX_KEYS_PER_SHARD }),
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Proofgate bundle delta',
    description: 'Content of delta-<revision>.jws.',
    additionalProperties: false,
  },
);

/**
 * The payload of `link-<revision>.jws`: names a whole bundle that replaces deltas and changes nothing, so a verifier
 * continues without fetching it.
 */
export const LINK_CONTENT = Type.Object(
  {
    auth_site: authSite,
    revision,
    previous_head: sha256('Head of the document before.'),
    bundle_sha256: sha256("Of the bundle's payload."),
    issued_at: time('issued_at of the bundle.'),
    expires_at: time('expires_at of the bundle.'),
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Proofgate bundle link',
    description: 'Content of link-<revision>.jws.',
    additionalProperties: false,
  },
);

export type BundleContent = Readable<Static<typeof BUNDLE_CONTENT>>;
export type DeltaContent = Readable<Static<typeof DELTA_CONTENT>>;
export type LinkContent = Readable<Static<typeof LINK_CONTENT>>;
export type FreshnessContent = Readable<Static<typeof FRESHNESS_CONTENT>>;
export type BreakGlassContent = Readable<Static<typeof BREAK_GLASS_CONTENT>>;

/** Content of a document by its kind. */
export interface ContentOf {
  readonly bundle: BundleContent;
  readonly delta: DeltaContent;
  readonly link: LinkContent;
  readonly freshness: FreshnessContent;
  readonly breakGlass: BreakGlassContent;
}
