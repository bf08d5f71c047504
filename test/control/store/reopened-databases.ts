/** Both databases as a program finds them at start, with statements that change the data of an earlier run. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import LibsqlDatabase from 'libsql';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { DATABASE_FILE, openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { NOW_MS } from './databases.ts';

interface ReopenedDatabase {
  /** Migrates to the newest schema. */
  readonly open: () => Promise<ControlStore>;
  /** Runs SQL while no store is open. */
  readonly run: (statement: string) => Promise<void>;
}

/** Undoes what the last step adds. */
export const DROP_LAST = ['drop table oauth_issuer'];

/** Undoes what the steps from `0020-last-used` on add. */
export const DROP_SINCE_KEY_USES = [
  'drop table key_use',
  'alter table site drop column replay_stores',
  ...['unlisted_revision', 'unlisted_until_ms', 'next_unlisted_revision', 'next_unlisted_until_ms'].map(
    (name) => `alter table target drop column ${name}`,
  ),
  'alter table site drop column accepted_proofs',
  'alter table target drop column accepted_proofs_lacked_at_ms',
  ...DROP_LAST,
];

/** Undoes what the steps from `0019-revocation-receipts` on add, if the table of instances goes too. */
const DROP_RECEIPTS = [
  ...DROP_SINCE_KEY_USES,
  'drop table signed_bound',
  'drop table revocation_bound',
  ...['unsigned_revision', 'unsigned_head', 'unsigned_until_ms', 'fresh_until_ms'].map(
    (name) => `alter table target drop column ${name}`,
  ),
];

const DROP_INSTANCES = [...DROP_RECEIPTS, 'drop table decision_summary', 'drop table target_instance'];

/** Undoes what the steps from `0016-observations` on add. */
export const DROP_OBSERVATIONS = [
  ...DROP_INSTANCES,
  'drop index route_observed',
  'alter table route drop column observe_until_seconds',
  'alter table site drop column unmatched_until_seconds',
  'alter table site drop column observations',
  'alter table target drop column enforcement_lacked_at_ms',
  'alter table target drop column enforced_observations',
];

const DROP_AUDIT_REASONS = [...DROP_OBSERVATIONS, 'alter table audit_event drop column reason'];

/** Undoes what the steps from `0012-access-token-makers` on add. */
export const DROP_FROM_TOKEN_MAKERS = [
  ...DROP_AUDIT_REASONS,
  ...['target_name', 'source_name', 'enrollment_policy_name'].map((index) => `drop index ${index}`),
  'alter table source_revision drop column discovery',
  'alter table access_token drop column created_by',
];

const DROP_LIST_RANGES = [
  ...[
    ...['role_grant', 'access_token'].flatMap((table) =>
      ['environment', 'fleet', 'scope'].map((scope) => `${table}_${scope}_list`),
    ),
    ...['fleet_list', 'site_environment_list', 'site_fleet_list', 'target_list', 'source_list'],
    ...['enrollment_policy_list', 'enrollment_state_list', 'derived_key_thumbprint_list'],
    ...['derived_key_client_list', 'derived_key_status_list', 'derived_key_revocations'],
    'operator_session_principal',
  ].map((index) => `drop index ${index}`),
  'alter table site drop column environment_id',
  ...['role_grant', 'access_token'].flatMap((table) =>
    ['environment_id', 'fleet_id'].map((column) => `alter table ${table} drop column ${column}`),
  ),
  'create index fleet_environment on fleet (environment_id)',
  'create index site_fleet on site (fleet_id)',
  'create index source_site on source (site_id)',
  'create index derived_key_thumbprint on derived_key (site_id, thumbprint)',
];

const DROP_KEY_SET_FAILURES = [
  'alter table key_set drop column failed_at_ms',
  'alter table key_set drop column failure_code',
];

/** Undoes what the steps from `0007-blocked-callers` on add. */
export const DROP_FROM_BLOCKED_CALLERS = [
  ...DROP_FROM_TOKEN_MAKERS,
  ...DROP_LIST_RANGES,
  ...DROP_KEY_SET_FAILURES,
  'alter table installation drop column previous_master_key_id',
  'alter table installation drop column master_key_rotating',
  'alter table enrollment_policy drop column next_source_revision',
  'drop table blocked_caller',
  'alter table site drop column blocked_published',
  'alter table target drop column blocked_lacked_at_ms',
  'alter table target drop column passport_header_lacked_at_ms',
];

/** For one test file: created before its tests, removed after them. */
export function reopenedDatabases(): { readonly [N in 'sqlite' | 'postgres']: ReopenedDatabase } {
  let directory: string;
  let server: TestPostgresServer;
  let url: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'proofgate-store-'));
    server = await TestPostgresServer.start();
    url = await server.createDatabase();
  });
  afterAll(async () => {
    await rm(directory, { recursive: true, force: true });
    await server.stop();
  });
  const nowMs = () => NOW_MS;
  return {
    sqlite: {
      open: () => openSqliteStore({ dataDirectory: directory, nowMs }),
      run: async (statement) => {
        const database = new LibsqlDatabase(join(directory, DATABASE_FILE));
        database.exec(statement);
        database.close();
      },
    },
    postgres: {
      open: () => openPostgresStore({ url, nowMs }),
      run: async (statement) => void (await server.query(url, statement)),
    },
  };
}
