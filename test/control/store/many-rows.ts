/** Fills a database with up to half a million audit events and many rows of what Control lists, by a few statements. */
import type { PlannedDatabase } from './planned-database.ts';

export const EVENTS = 500_000;
const KEYS = 100_000;
const ROWS = 10_000;
/** Of short rows: PostgreSQL reads a small table faster than an index. */
const SHORT_ROWS = 120_000;
/** Sites with events; 20 make a fleet, 100 an environment. The first environment has only old events. */
const SITES = 2_000;
/** Half of the keys, enrollments, clients and so on. */
export const BIG_SITE = 'site-500';
/** An environment with many fleets, and a fleet with many sites, that have no events. */
export const BIG_ENVIRONMENT = 'env_1000';
export const BIG_FLEET = 'flt_200';

/** Names of columns with the SQL of their values for row `n`. */
type Columns = Readonly<Record<string, string>>;

const VERSIONED: Columns = { version: '1', created_at_ms: '1', updated_at_ms: '1' };
const SITE_OF_EVENT = `(case when n < 10000 then n % 100 else 100 + n % ${SITES - 100} end)`;
const OF_SITE: Columns = {
  site_id: `case when n % 2 = 0 then '${BIG_SITE}' else 'site-' || (n % ${SITES}) end`,
};
const VERIFIED: Columns = {
  client_id: "'client-' || (n % 500)",
  policy_id: "'pol_' || (n % 300)",
  source_id: "'src_1'",
  source_revision: '1',
  public_jwk: "'{}'",
  thumbprint: "'print-' || (n / 4)",
  verified_issuer: "'https://issuer.example'",
  verified_subject: "'system:serviceaccount:prod:app-' || n",
  provenance: "'{}'",
};
const SCOPE: Columns = {
  role: "'viewer'",
  scope_kind:
    "case n % 4 when 0 then 'installation' when 1 then 'environment' when 2 then 'fleet' else 'site' end",
  scope_id:
    "case n % 4 when 0 then '' when 1 then 'env_' || (n % 20) when 2 then 'flt_' || (n % 100) else 'site-' || (n % 2000) end",
  environment_id:
    "case n % 4 when 0 then null when 1 then 'env_' || (n % 20) when 2 then 'env_' || (n % 100 / 5) else 'env_' || (n % 2000 / 100) end",
  fleet_id: "case n % 4 when 2 then 'flt_' || (n % 100) when 3 then 'flt_' || (n % 2000 / 20) else null end",
};

const TABLES: readonly { readonly table: string; readonly rows: number; readonly columns: Columns }[] = [
  {
    table: 'environment',
    rows: SHORT_ROWS,
    columns: { id: "'env_' || n", name: "'env_' || n", ...VERSIONED },
  },
  {
    table: 'fleet',
    rows: ROWS,
    columns: {
      id: "'flt_' || n",
      environment_id: `case when n < ${SITES / 20} then 'env_' || (n / 5) else '${BIG_ENVIRONMENT}' end`,
      name: "'flt_' || n",
      ...VERSIONED,
    },
  },
  {
    table: 'site',
    rows: SHORT_ROWS,
    columns: {
      ...{ id: "'site-' || n", uid: "'uid-' || n", display_name: "'x'", trust_domain: "'x'" },
      fleet_id: `case when n < ${SITES} then 'flt_' || (n / 20) else '${BIG_FLEET}' end`,
      environment_id: `case when n < ${SITES} then 'env_' || (n / 100) else '${BIG_ENVIRONMENT}' end`,
      ...{ issuer_url: "'https://x/' || n", origins: "'[]'", skew_seconds: '5', single_verifier: '0' },
      ...{ bundle_lifetime_seconds: '86400', source_capacity: '16', revision: '0', base_revision: '0' },
      ...{ floor_revision: '0', whole_needed: '0', ...VERSIONED },
    },
  },
  {
    table: 'audit_event',
    rows: EVENTS,
    columns: {
      ...{ id: "'aud_' || n", at_ms: 'n', actor: "'bootstrap'", resource_kind: "'client'" },
      kind: "case when n % 10000 = 7 then 'rare' else 'kind' || (n % 7) end",
      resource_id: "'res-' || (n % 50000)",
      environment_id: `'env_' || (${SITE_OF_EVENT} / 100)`,
      fleet_id: `'flt_' || (${SITE_OF_EVENT} / 20)`,
      site_id: `'site-' || ${SITE_OF_EVENT}`,
      site_uid: `'uid-' || ${SITE_OF_EVENT}`,
    },
  },
  {
    table: 'derived_key',
    rows: KEYS,
    columns: {
      ...{ key_id: "'dk_' || n", enrollment_id: "'enr_' || n", ...OF_SITE, ...VERIFIED, ...VERSIONED },
      status: "case when n % 1000 < 2 then 'revoked' else 'active' end",
      revoked_at_ms: 'case when n % 1000 < 2 then n end',
      expires_at_seconds: 'n',
    },
  },
  {
    table: 'enrollment',
    rows: KEYS,
    columns: {
      ...{ id: "'enr_' || n", ...OF_SITE, ...VERIFIED, ...VERSIONED, challenge_id: "'chl_' || n" },
      ...{ submission_hash: "'h'", token_hash: "'t' || n", token_expires_at_seconds: '1' },
      state: "case when n % 1000 < 2 then 'pending_approval' else 'issued' end",
      key_expires_at_seconds: 'n',
    },
  },
  {
    table: 'client',
    rows: ROWS,
    columns: { ...OF_SITE, client_id: "'client-' || n", subject: "'s'", context: "'{}'", ...VERSIONED },
  },
  {
    table: 'client_grant',
    rows: KEYS,
    columns: {
      site_id: `'${BIG_SITE}'`,
      client_id: "'client-' || (n / 10)",
      ...{ resource: "'res-' || n", access: "'read'", created_at_ms: '1' },
    },
  },
  {
    table: 'route',
    rows: ROWS,
    columns: { ...OF_SITE, route_id: "'r-' || n", definition: "'{}'", ...VERSIONED },
  },
  {
    table: 'broker',
    rows: ROWS,
    columns: {
      ...{ ...OF_SITE, issuer: "'https://' || (n % 5000)", trust_domain: "'td' || n" },
      ...{ key_pins: "'{}'", definition: "'{}'", ...VERSIONED },
    },
  },
  {
    table: 'oauth_issuer',
    rows: ROWS,
    columns: { ...OF_SITE, issuer: "'https://' || n", definition: "'{}'", ...VERSIONED },
  },
  {
    table: 'target',
    rows: ROWS,
    columns: {
      id: "'tgt_' || n",
      ...OF_SITE,
      name: "'t' || n",
      state: "'attached'",
      token_hash: "'h' || n",
      ...VERSIONED,
    },
  },
  {
    table: 'source',
    rows: ROWS,
    columns: {
      ...{ id: "'src_' || n", ...OF_SITE, kind: "'oidc_jwks'", display_name: "'x'" },
      ...{ on_suspend: "'keep'", on_retire: "'keep'", ...VERSIONED },
    },
  },
  {
    table: 'enrollment_policy',
    rows: ROWS,
    columns: {
      ...{
        id: "'pol_' || n",
        ...OF_SITE,
        reference: "'ref' || n",
        display_name: "'x'",
        source_id: "'src_1'",
      },
      ...{
        source_revision: '1',
        client_id: "'client-1'",
        approval: "'manual'",
        max_key_lifetime_seconds: '1',
      },
      ...{
        verified_subject: "'s'",
        verified_issuer: "'i'",
        max_keys_per_token: '1',
        state: "'active'",
        ...VERSIONED,
      },
    },
  },
  {
    table: 'blocked_subject',
    rows: ROWS,
    columns: {
      ...OF_SITE,
      issuer: "'i' || (n % 50)",
      subject: "'s' || n",
      blocked_at_ms: '1',
      blocked_by: "'x'",
    },
  },
  {
    table: 'blocked_caller',
    rows: ROWS,
    columns: {
      ...OF_SITE,
      name: "'n' || n",
      issuer: "'i'",
      subject: "'s'",
      blocked_at_ms: '1',
      blocked_by: "'x'",
    },
  },
  {
    table: 'role_grant',
    rows: SHORT_ROWS,
    columns: {
      id: "'rg_' || n",
      principal: "'group:' || n",
      ...SCOPE,
      created_at_ms: '1',
      created_by: "'x'",
    },
  },
  {
    table: 'access_token',
    rows: SHORT_ROWS,
    columns: { id: "'at_' || n", name: "'x'", token_hash: "'h' || n", ...SCOPE, ...VERSIONED },
  },
  {
    table: 'operator_session',
    rows: SHORT_ROWS,
    columns: {
      ...{ token_hash: "'hash' || n", principal: "'oidc:' || (n % 50)", display_name: "'x'" },
      ...{ groups: "'[]'", created_at_ms: '1', expires_at_ms: '4000000000000' },
    },
  },
];

/** @param share of all rows */
export async function fill(database: PlannedDatabase, share = 1): Promise<void> {
  const isSqlite = database.name === 'sqlite';
  // The rows refer to others that do not matter here.
  await database.run(isSqlite ? 'pragma foreign_keys = off' : 'set session_replication_role = replica');
  for (const { columns, rows, table } of TABLES) {
    const counted = isSqlite
      ? `(with recursive g(n) as (select 0 union all select n + 1 from g where n < ${rows * share - 1}) select n from g) g`
      : `generate_series(0, ${rows * share - 1}) as g(n)`;
    const values = Object.values(columns).join(', ');
    await database.run(`insert into ${table} (${Object.keys(columns)}) select ${values} from ${counted}`);
  }
  await database.analyze();
}
