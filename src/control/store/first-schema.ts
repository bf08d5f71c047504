/** The first schema, for both databases; `Dialect` holds their differences. */

/** SQL that differs between the databases. */
export interface Dialect {
  /** Text that sorts by bytes, whatever the database's locale: pages and shards depend on that order. */
  readonly text: string;
  readonly bytes: string;
  /** An auto-incremented integer. */
  readonly sequence: string;
}

const versioned = 'version bigint not null, created_at_ms bigint not null, updated_at_ms bigint not null';

const tables = ({ bytes, sequence }: Dialect): readonly string[] => [
  'installation (id integer primary key check (id = 1), bootstrap_token_hash text, master_key_id text)',
  `environment (id text primary key, name text not null unique, ${versioned})`,
  `fleet (id text primary key, environment_id text not null references environment (id), name text not null, ${versioned}, unique (environment_id, name))`,
  `site (id text primary key, fleet_id text not null references fleet (id), display_name text not null, trust_domain text not null,
    issuer_url text not null unique, origins text not null, skew_seconds integer not null, single_verifier integer not null,
    bundle_lifetime_seconds integer not null, source_capacity integer not null, revision bigint not null, head text,
    base_revision bigint not null, floor_revision bigint not null, whole_needed integer not null, policy_revision bigint not null default 0,
    ${versioned})`,
  `broker (site_id text not null references site (id), issuer text not null, definition text not null, ${versioned}, primary key (site_id, issuer))`,
  `signing_key (id text primary key, site_id text not null references site (id), purpose text not null, state text not null, public_jwk text not null,
    thumbprint text not null, sealed_private_key text not null, created_at_ms bigint not null, retire_at_ms bigint)`,
  `target (id text primary key, site_id text not null references site (id), name text not null, state text not null, token_hash text not null unique,
    previous_token_hash text unique, previous_token_ends_at_ms bigint, acked_revision bigint, acked_head text, acked_at_ms bigint,
    refused_revision bigint, refused_code text, refused_detail text, refused_at_ms bigint, last_seen_at_ms bigint, ${versioned})`,
  `client (site_id text not null references site (id), client_id text not null, subject text not null, context text not null, ${versioned},
    primary key (site_id, client_id))`,
  `client_grant (site_id text not null, client_id text not null, resource text not null, access text not null, created_at_ms bigint not null,
    primary key (site_id, client_id, resource), foreign key (site_id, client_id) references client (site_id, client_id))`,
  `route (site_id text not null references site (id), route_id text not null, definition text not null, ${versioned}, primary key (site_id, route_id))`,
  `route_sources (site_id text not null, route_id text not null, allowed_sources text not null, ${versioned}, primary key (site_id, route_id),
    foreign key (site_id, route_id) references route (site_id, route_id))`,
  `source (id text primary key, site_id text not null references site (id), kind text not null, display_name text not null,
    on_suspend text not null, on_retire text not null, ${versioned})`,
  `source_revision (source_id text not null references source (id), revision integer not null, site_id text not null, state text not null,
    issuer text not null, jwks_uri text not null, audience text not null, fingerprint text, detected_scope text, validated_at_ms bigint,
    failure_code text, failure_detail text, awaited_revision bigint, state_since_ms bigint not null, ${versioned}, primary key (source_id, revision))`,
  'audience (audience text primary key, site_id text not null references site (id))',
  `key_set (source_id text not null, revision integer not null, jwks text not null, fetched_at_ms bigint not null, primary key (source_id, revision),
    foreign key (source_id, revision) references source_revision (source_id, revision))`,
  `enrollment_policy (id text primary key, site_id text not null references site (id), reference text not null unique, display_name text not null,
    source_id text not null references source (id), source_revision integer not null, client_id text not null, approval text not null,
    max_key_lifetime_seconds integer not null, verified_subject text not null, verified_issuer text not null, max_keys_per_token integer not null,
    state text not null, ${versioned})`,
  `challenge (id text primary key, site_id text not null, policy_id text not null, public_jwk text not null, thumbprint text not null,
    created_at_ms bigint not null, expires_at_ms bigint not null, enrollment_id text)`,
  `enrollment (id text primary key, site_id text not null references site (id), policy_id text not null references enrollment_policy (id), client_id text not null,
    source_id text not null, source_revision integer not null, challenge_id text not null unique, submission_hash text not null, public_jwk text not null,
    thumbprint text not null, state text not null, token_hash text not null, token_expires_at_seconds bigint not null, key_expires_at_seconds bigint not null,
    verified_issuer text not null, verified_subject text not null, provenance text not null, denial_code text, decided_by text, decided_at_ms bigint,
    key_id text unique, ${versioned})`,
  `derived_key (key_id text primary key, site_id text not null references site (id), client_id text not null, policy_id text not null,
    enrollment_id text not null unique, source_id text not null, source_revision integer not null, public_jwk text not null, thumbprint text not null,
    status text not null, expires_at_seconds bigint not null, verified_issuer text not null, verified_subject text not null, provenance text not null,
    revoked_at_ms bigint, revoked_by text, revoked_reason text, listed_revision bigint, revoked_revision bigint,
    listed_everywhere_at_ms bigint, revoked_everywhere_at_ms bigint, ${versioned})`,
  'revoked_public_key (site_id text not null, thumbprint text not null, revoked_at_ms bigint not null, primary key (site_id, thumbprint))',
  `blocked_subject (site_id text not null, issuer text not null, subject text not null, blocked_at_ms bigint not null, blocked_by text not null,
    primary key (site_id, issuer, subject))`,
  `site_change (seq ${sequence}, site_id text not null, kind text not null, reference text not null, created_at_ms bigint not null)`,
  `bundle_step (site_id text not null, revision bigint not null, kind text not null, head text not null, previous_head text, document text not null,
    bytes bigint not null, published_at_ms bigint not null, primary key (site_id, revision))`,
  `bundle_file (site_id text not null, revision bigint not null, name text not null, sha256 text not null, bytes bigint not null,
    keys integer, first_key text, primary key (site_id, revision, name))`,
  `bundle_blob (site_id text not null, sha256 text not null, content ${bytes} not null, primary key (site_id, sha256))`,
  `freshness (site_id text primary key, revision bigint not null, head text not null, as_of_seconds bigint not null, document text not null)`,
  `role_grant (id text primary key, principal text not null, role text not null, scope_kind text not null, scope_id text not null,
    created_at_ms bigint not null, created_by text not null, unique (principal, role, scope_kind, scope_id))`,
  `access_token (id text primary key, name text not null, token_hash text not null unique, role text not null, scope_kind text not null, scope_id text not null,
    expires_at_ms bigint, last_used_at_ms bigint, ${versioned})`,
  `operator_session (token_hash text primary key, principal text not null, display_name text not null, groups text not null,
    created_at_ms bigint not null, expires_at_ms bigint not null)`,
  'sign_in (state_hash text primary key, sealed text not null, expires_at_ms bigint not null)',
  `idempotency (actor text not null, key text not null, request_hash text not null, status integer not null, body text not null, headers text not null,
    created_at_ms bigint not null, primary key (actor, key))`,
  `audit_event (seq ${sequence}, id text not null unique, at_ms bigint not null, kind text not null, actor text not null, resource_kind text not null,
    resource_id text not null, environment_id text, fleet_id text, site_id text, before text, after text, request_id text)`,
];

const INDEXES: readonly string[] = [
  'fleet_environment on fleet (environment_id)',
  'site_fleet on site (fleet_id)',
  'signing_key_site on signing_key (site_id, state)',
  'target_site on target (site_id, state)',
  'source_site on source (site_id)',
  'source_revision_site on source_revision (site_id, state)',
  'enrollment_policy_site on enrollment_policy (site_id, id)',
  'enrollment_policy_source on enrollment_policy (source_id)',
  'challenge_expiry on challenge (expires_at_ms)',
  'enrollment_site on enrollment (site_id, id)',
  'enrollment_policy_state on enrollment (policy_id, state)',
  // For expiring overdue enrollments and pruning old ones.
  'enrollment_end on enrollment (state, key_expires_at_seconds)',
  'enrollment_token on enrollment (token_hash)',
  // For the keys of a bundle, in order. The index alone skips ended keys that are not pruned yet.
  'derived_key_site on derived_key (site_id, key_id, status, expires_at_seconds)',
  'derived_key_thumbprint on derived_key (site_id, thumbprint)',
  'derived_key_client on derived_key (site_id, client_id, expires_at_seconds)',
  'derived_key_source on derived_key (source_id, expires_at_seconds)',
  'derived_key_end on derived_key (expires_at_seconds)',
  // Partial indexes contain only rows that some target has not received, so they stay small with any number of keys.
  'derived_key_listed on derived_key (site_id, listed_revision) where listed_revision is not null and listed_everywhere_at_ms is null',
  'derived_key_revoked on derived_key (site_id, revoked_revision) where revoked_revision is not null and revoked_everywhere_at_ms is null',
  'site_change_site on site_change (site_id, seq)',
  'role_grant_principal on role_grant (principal)',
  'operator_session_expiry on operator_session (expires_at_ms)',
  'sign_in_expiry on sign_in (expires_at_ms)',
  'idempotency_age on idempotency (created_at_ms)',
  'audit_event_site on audit_event (site_id, seq)',
  'audit_event_fleet on audit_event (fleet_id, seq)',
  'audit_event_environment on audit_event (environment_id, seq)',
  'audit_event_resource on audit_event (resource_id, seq)',
  'audit_event_kind on audit_event (kind, seq)',
  'audit_event_age on audit_event (at_ms)',
];

export function firstSchema(dialect: Dialect): readonly string[] {
  return [
    ...tables(dialect).map((table) => `create table ${table.replaceAll(/\btext\b/g, dialect.text)}`),
    ...INDEXES.map((index) => `create index ${index}`),
    'insert into installation (id) values (1)',
  ];
}
