import { DEFAULT_MIGRATION_TABLE, type Kysely, type Migration, Migrator, sql } from 'kysely';
import { addBrokerTrustDomain } from './brokers-by-trust-domain.ts';
import { type Dialect, firstSchema } from './first-schema.ts';
import { SchemaNewerError } from './port.ts';
import type { Tables } from './repositories/tables.ts';

/** Released migrations stay as they are: installed databases have run them. */
const migrationsFor = (dialect: Dialect): { readonly [name: string]: Migration } => ({
  '0001-first': statements(...firstSchema(dialect)),
  // Finds the last key of a policy without reading its others.
  '0002-policy-keys': statements(
    'create index derived_key_policy on derived_key (policy_id, status, expires_at_seconds)',
  ),
  // A target's unpublished position, and the total by which it has raised its site's revision.
  '0003-ahead-targets': statements(
    'alter table target add column ahead_revision bigint',
    'alter table target add column ahead_since_ms bigint',
    'alter table target add column raised_revisions bigint not null default 0',
  ),
  // A unique ID of each Auth Site that is never reused, unlike its identifier. An event belongs to a site if it is of its
  // fleet and not older than the site; older ones are of a deleted site and get no ID.
  '0004-site-uids': statements(
    `alter table site add column uid ${dialect.text}`,
    `update site set uid = id || '@' || created_at_ms`,
    'create unique index site_uid on site (uid)',
    `alter table audit_event add column site_uid ${dialect.text}`,
    `update audit_event set site_uid = (select site.uid from site where site.id = audit_event.site_id
      and site.fleet_id = audit_event.fleet_id and site.created_at_ms <= audit_event.at_ms) where site_id is not null`,
    'create index audit_event_site_uid on audit_event (site_uid, seq)',
  ),
  // The issuer key that signed an enrollment's token, so that approval can check that it is still valid.
  '0005-token-key': statements(`alter table enrollment add column token_key_thumbprint ${dialect.text}`),
  // Brokers of one issuer for several trust domains, their URLs, and when their keys were pinned.
  '0006-brokers-by-trust-domain': { up: (db) => addBrokerTrustDomain(db, dialect) },
  // Callers that bundles deny, and when a request of each target last did not name an optional bundle member. No request
  // so far named one.
  '0007-blocked-callers': statements(
    `create table blocked_caller (site_id ${dialect.text} not null references site (id), name ${dialect.text} not null,
      issuer ${dialect.text} not null, subject ${dialect.text}, holder_thumbprint ${dialect.text},
      blocked_at_ms bigint not null, blocked_by ${dialect.text} not null, primary key (site_id, name))`,
    'alter table site add column blocked_published integer not null default 0',
    'alter table target add column blocked_lacked_at_ms bigint',
    'alter table target add column passport_header_lacked_at_ms bigint',
    'update target set blocked_lacked_at_ms = last_seen_at_ms, passport_header_lacked_at_ms = last_seen_at_ms',
  ),
  // The source revision that a declaration binds a policy to, once that revision is active.
  '0008-declared-policies': statements(
    'alter table enrollment_policy add column next_source_revision integer',
  ),
  // A rotation of the master key: the previous key, and whether secrets may still be encrypted with it.
  '0009-master-key-rotation': statements(
    `alter table installation add column previous_master_key_id ${dialect.text}`,
    'alter table installation add column master_key_rotating integer not null default 0',
  ),
  // When fetching a key set again last failed, and why.
  '0010-key-set-failures': statements(
    'alter table key_set add column failed_at_ms bigint',
    `alter table key_set add column failure_code ${dialect.text}`,
  ),
  // Makes each list a range of an index, for every reach: columns of the place that a role may cover, and indexes that end with
  // the column that orders the list.
  '0011-list-ranges': statements(
    `alter table site add column environment_id ${dialect.text}`,
    'update site set environment_id = (select environment_id from fleet where fleet.id = site.fleet_id)',
    ...['role_grant', 'access_token'].flatMap((table) => [
      `alter table ${table} add column environment_id ${dialect.text}`,
      `alter table ${table} add column fleet_id ${dialect.text}`,
      `update ${table} set fleet_id = case scope_kind when 'fleet' then scope_id
        when 'site' then (select site.fleet_id from site where site.id = scope_id) end`,
      `update ${table} set environment_id = case scope_kind when 'environment' then scope_id
        else (select fleet.environment_id from fleet where fleet.id = ${table}.fleet_id) end`,
      `create index ${table}_environment_list on ${table} (environment_id, id)`,
      `create index ${table}_fleet_list on ${table} (fleet_id, id)`,
      `create index ${table}_scope_list on ${table} (scope_kind, scope_id, id)`,
    ]),
    'create index fleet_list on fleet (environment_id, id)',
    'create index site_environment_list on site (environment_id, id)',
    'create index site_fleet_list on site (fleet_id, id)',
    'create index target_list on target (site_id, id)',
    'create index source_list on source (site_id, id)',
    'create index enrollment_policy_list on enrollment (site_id, policy_id, id)',
    'create index enrollment_state_list on enrollment (site_id, state, id)',
    'create index derived_key_thumbprint_list on derived_key (site_id, thumbprint, key_id)',
    'create index derived_key_client_list on derived_key (site_id, client_id, key_id)',
    'create index derived_key_status_list on derived_key (site_id, status, key_id)',
    'create index derived_key_revocations on derived_key (site_id, revoked_at_ms) where revoked_at_ms is not null',
    'create index operator_session_principal on operator_session (principal, token_hash)',
    // Their columns begin one of the above.
    ...['fleet_environment', 'site_fleet', 'source_site', 'derived_key_thumbprint'].map(
      (index) => `drop index ${index}`,
    ),
  ),
  // Who created an access token. The audit trail knows it of older ones, unless it was pruned.
  '0012-access-token-makers': statements(
    `alter table access_token add column created_by ${dialect.text}`,
    `update access_token set created_by = (select max(actor) from audit_event
      where resource_id = access_token.id and kind = 'proofgate.control.access_token.create')`,
  ),
  // Whether validation compares a source with its issuer's discovery document.
  '0013-source-discovery': statements(
    `alter table source_revision add column discovery ${dialect.text} not null default 'checked'`,
  ),
  // For lists that are filtered by name.
  '0014-names': statements(
    'create index target_name on target (site_id, name, id)',
    'create index source_name on source (site_id, display_name, id)',
    'create index enrollment_policy_name on enrollment_policy (site_id, display_name, id)',
  ),
  // Why an operator made a change. Earlier events have it only within the resource, if at all.
  '0015-audit-reasons': statements(`alter table audit_event add column reason ${dialect.text}`),
  // Ends of observations, whether the newest whole bundle asks for them, and what each target says about them. No request so far
  // named the member.
  '0016-observations': statements(
    'alter table route add column observe_until_seconds bigint',
    'create index route_observed on route (site_id, observe_until_seconds) where observe_until_seconds is not null',
    'alter table site add column unmatched_until_seconds bigint',
    `alter table site add column observations ${dialect.text} not null default 'none'`,
    'alter table target add column enforcement_lacked_at_ms bigint',
    'update target set enforcement_lacked_at_ms = last_seen_at_ms',
    `alter table target add column enforced_observations ${dialect.text}`,
  ),
  // The verifiers that share a target's token, and the replay store of each.
  '0017-target-instances': statements(
    `create table target_instance (target_id ${dialect.text} not null references target (id) on delete cascade,
      instance_id ${dialect.text} not null, site_id ${dialect.text} not null, version ${dialect.text} not null,
      replay_store ${dialect.text}, revision bigint, enforced_observations bigint, first_seen_at_ms bigint not null, last_seen_at_ms bigint not null,
      primary key (target_id, instance_id))`,
    'create index target_instance_site on target_instance (site_id)',
  ),
  // Counts of decisions, a row a target and minute or hour. The index has all that a sum needs.
  '0018-decision-summaries': statements(
    `create table decision_summary (span_seconds integer not null, start_seconds bigint not null, target_id ${dialect.text} not null,
      site_id ${dialect.text} not null, allowed bigint not null, denied bigint not null, observed bigint not null, dropped bigint not null,
      summary text not null, primary key (span_seconds, start_seconds, target_id))`,
    'create index decision_summary_site on decision_summary (site_id, span_seconds, start_seconds, target_id, allowed, denied, observed, dropped)',
  ),
  // What each verifier acknowledged, and until when a verifier may use what was signed: `signed-bounds.ts`.
  '0019-revocation-receipts': statements(
    ...['public_key', 'acked_head'].map(
      (name) => `alter table target_instance add column ${name} ${dialect.text}`,
    ),
    ...[
      'realtime_staleness_seconds',
      'break_glass',
      'acked_revision',
      'acked_at_ms',
      'signed_at_ms',
      'fresh_until_ms',
    ].map((name) => `alter table target_instance add column ${name} bigint`),
    ...['unsigned_revision', 'unsigned_until_ms', 'fresh_until_ms'].map(
      (name) => `alter table target add column ${name} bigint`,
    ),
    `alter table target add column unsigned_head ${dialect.text}`,
    `create table signed_bound (site_id ${dialect.text} primary key references site (id) on delete cascade, revision bigint not null,
      expires_end_seconds bigint not null, bounded_end_seconds bigint not null, realtime_end_seconds bigint not null,
      fresh_seconds bigint not null, skew_seconds bigint not null, lifetime_seconds bigint not null,
      bounded_seconds bigint not null, realtime_seconds bigint not null,
      longest_realtime_seconds bigint not null, unlimited_seen_seconds bigint not null)`,
    `create table revocation_bound (site_id ${dialect.text} not null references site (id) on delete cascade, revision bigint not null,
      expires_end_seconds bigint not null, bounded_end_seconds bigint not null, realtime_end_seconds bigint not null,
      fresh_seconds bigint not null, skew_seconds bigint not null, primary key (site_id, revision))`,
  ),
  // When a target last saw each derived key in use. Apart from the keys, so that the many writes touch short rows of one index; a row a
  // target, so that no target hides what another one reported.
  '0020-last-used': statements(
    `create table key_use (key_id ${dialect.text} not null references derived_key (key_id) on delete cascade, target_id ${dialect.text} not null,
      used_at_seconds bigint not null, primary key (key_id, target_id))`,
  ),
  // Whether a site's verifiers use several replay stores on purpose.
  '0021-replay-stores': statements(
    `alter table site add column replay_stores ${dialect.text} not null default 'one'`,
  ),
  // What instances that are not listed may have, and until when they may use it: `held-revision.ts`.
  '0022-unlisted-instances': statements(
    ...['unlisted_revision', 'unlisted_until_ms', 'next_unlisted_revision', 'next_unlisted_until_ms'].map(
      (name) => `alter table target add column ${name} bigint`,
    ),
  ),
  // Whether the newest whole bundle has routes that accept further proofs. No request so far named the member.
  '0023-accepted-proofs': statements(
    `alter table site add column accepted_proofs ${dialect.text} not null default 'none'`,
    'alter table target add column accepted_proofs_lacked_at_ms bigint',
    'update target set accepted_proofs_lacked_at_ms = last_seen_at_ms',
  ),
  // OAuth authorization servers, with the keys that Control fetched of them.
  '0024-oauth-issuers': statements(
    `create table oauth_issuer (site_id ${dialect.text} not null references site (id), issuer ${dialect.text} not null,
      definition ${dialect.text} not null, keys ${dialect.text}, fetched_at_ms bigint, attempted_at_ms bigint,
      failure_code ${dialect.text}, version bigint not null, created_at_ms bigint not null, updated_at_ms bigint not null,
      primary key (site_id, issuer))`,
  ),
});

function statements(...texts: readonly string[]): Migration {
  return {
    async up(db: Kysely<unknown>): Promise<void> {
      for (const text of texts) await sql.raw(text).execute(db);
    },
  };
}

/**
 * Migrates a database to the newest schema. Concurrent instances take turns.
 * @throws SchemaNewerError, or the database's error; all steps are one transaction, so nothing is half done
 */
export async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const migrations = migrationsFor(dialect);
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return;
  if (!isUnknownStep(error)) throw error;
  const newer = await lastStepBeyond(Object.keys(migrations), db).catch(() => undefined);
  throw newer === undefined ? error : new SchemaNewerError(newer);
}

/** Kysely's message when the database has unknown migrations. */
function isUnknownStep(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('corrupted migrations');
}

/** The database's last migration that this version does not know. */
async function lastStepBeyond(known: readonly string[], db: Kysely<Tables>): Promise<string | undefined> {
  const { rows } = await sql<{
    readonly name: string;
  }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(db);
  const beyond = rows.map(({ name }) => name).filter((name) => !known.includes(name));
  return beyond.toSorted().at(-1);
}
