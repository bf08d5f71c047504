/**
 * Tests Control restored from an older backup: verifiers continue, with the state that the backup holds. On both databases,
 * through a real Envoy and a real verifier that keeps running throughout.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../../src/protocol/strict-json.ts';
import { ControlStage, type EnrolledKey } from '../../support/control/control-fixture.ts';
import { FollowedGateway } from '../../support/control/followed-gateway.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { errorCode } from '../../support/harness/proofgate-command.ts';
import { waitFor } from '../../support/wait.ts';
import { type ControlBackups, postgresBackups, sqliteBackups } from './campaign/backups.ts';

const ALLOWED = { status: 200, reason: '' };
const REVOKED = { status: 401, reason: 'invalid_request_proof', detail: 'key_revoked' };
const UNKNOWN = { status: 401, reason: 'invalid_request_proof', detail: 'key_unknown' };

interface Opened {
  readonly stage: ControlStage;
  readonly backups: ControlBackups;
  close(): Promise<void>;
}

async function openSqlite(): Promise<Opened> {
  const stage = await ControlStage.start();
  return { stage, backups: sqliteBackups, close: () => stage.stop() };
}

async function openPostgres(): Promise<Opened> {
  const server = await TestPostgresServer.start();
  const databaseUrl = await server.createDatabase();
  const stage = await ControlStage.start({ databaseUrl });
  return {
    stage,
    backups: postgresBackups(server, databaseUrl),
    async close() {
      await stage.stop();
      await server.stop();
    },
  };
}

/**
 * A verifier that is further ahead than a target may raise in all: docs/operate/control-upkeep.md "Backup and restore". The other
 * database differs only in how it is restored.
 */
describe('a backup that is much older, on PostgreSQL', () => {
  let opened: Opened;
  let stage: ControlStage;
  let gateway: FollowedGateway;
  let kept: EnrolledKey;

  beforeAll(async () => {
    opened = await openPostgres();
    ({ stage } = opened);
    gateway = await FollowedGateway.start(stage);
    kept = await stage.enroll('billing');
    await gateway.awaitOutcome(kept.keyFile, ALLOWED);
    await waitFor('an acknowledgement', async () => (await target()).state === 'current');
    await opened.backups.take(stage);
    // Stands in for months of revisions.
    await stage.ctl('raise-floor', SITE_ID, '--above', '3000000');
    await waitFor('the verifier', async () => (await gateway.revision()) > 3_000_000);
    await stage.stopControl('SIGKILL');
    await opened.backups.bringBack(stage);
    await stage.startControl();
  });
  afterAll(async () => {
    await gateway?.stop();
    await opened?.close();
  });

  async function target(): Promise<JsonObject> {
    const { targets } = await stage.get(`/v1/sites/${SITE_ID}/propagation`);
    const [found] = Array.isArray(targets) ? targets : [];
    return found as JsonObject;
  }

  it('shows its target as ahead, until an operator raises the floor: then it takes bundles again', async () => {
    const stands = await gateway.revision();
    await waitFor('the target to be ahead', async () => (await target()).state === 'ahead');
    expect(await target()).toMatchObject({ ahead_revision: stands, behind_revisions: 0 });
    const [listed] = await stage.list('targets');
    expect(listed).toMatchObject({ state: 'attached', ahead_revision: stands });
    expect((await stage.ctl('get', 'sites', SITE_ID)).site_id).toBe(SITE_ID);
    expect(await gateway.revision()).toBe(stands);

    const raised = await stage.ctl('raise-floor', SITE_ID, '--above', String(stands));
    expect(raised).toMatchObject({ site_id: SITE_ID, floor_revision: stands });
    await waitFor('the verifier to move on', async () => (await gateway.revision()) > stands);
    await waitFor('an acknowledgement', async () => (await target()).state === 'current');
    await gateway.awaitOutcome(kept.keyFile, ALLOWED);
    await stage.ctl('revoke', kept.keyId);
    await gateway.awaitOutcome(kept.keyFile, REVOKED);
  });
});

describe.each([
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
])('an older backup on %s', (_, open) => {
  let opened: Opened;
  let stage: ControlStage;
  let gateway: FollowedGateway;
  let kept: EnrolledKey;
  let revokedLater: EnrolledKey;
  let enrolledLater: EnrolledKey;
  /** The last revision that the verifier had loaded and acknowledged when Control was lost. */
  let acknowledgedBefore = 0;

  beforeAll(async () => {
    opened = await open();
    ({ stage } = opened);
    gateway = await FollowedGateway.start(stage);
    [kept, revokedLater] = [await stage.enroll('billing'), await stage.enroll('billing')];
    await gateway.awaitOutcome(kept.keyFile, ALLOWED);
    await opened.backups.take(stage);
    enrolledLater = await stage.enroll('billing');
    await stage.ctl('revoke', revokedLater.keyId);
    await gateway.awaitOutcome(enrolledLater.keyFile, ALLOWED);
    await gateway.awaitOutcome(revokedLater.keyFile, REVOKED);
    acknowledgedBefore = await waitFor('an acknowledgement', acknowledgedRevision);
    await stage.stopControl('SIGKILL');
    await opened.backups.bringBack(stage);
    await stage.startControl();
  });
  afterAll(async () => {
    await gateway?.stop();
    await opened?.close();
  });

  /** Undefined until the target has acknowledged a revision to this Control. */
  async function acknowledgedRevision(): Promise<number | undefined> {
    const { targets } = await stage.get(`/v1/sites/${SITE_ID}/propagation`);
    const [target] = Array.isArray(targets) ? targets : [];
    const revision = await gateway.revision();
    return (target as JsonObject | undefined)?.acked_revision === revision ? revision : undefined;
  }

  it('what is published next lies above what the verifier knows, and it takes that', async () => {
    const revision = await waitFor('the verifier to move on', async () => {
      const now = await gateway.revision();
      return now > acknowledgedBefore ? now : undefined;
    });
    expect(revision).toBeGreaterThan(acknowledgedBefore);
    await waitFor('an acknowledgement', acknowledgedRevision);
    const { items } = await stage.ctl('get', 'audit');
    const kinds = (Array.isArray(items) ? items : []).map(({ kind }: JsonObject) => kind);
    expect(kinds).toContain('proofgate.control.site.raise_floor');
    expect(kinds).not.toContain('proofgate.control.target.refuse_bundle');
  });

  it('a key from before passes; one from after is unknown', async () => {
    await gateway.awaitOutcome(enrolledLater.keyFile, UNKNOWN);
    await gateway.awaitOutcome(kept.keyFile, ALLOWED);
    const lost = await stage.tryCtl('get', 'keys', enrolledLater.keyId);
    expect(errorCode(lost)).toBe('not_found');
  });

  it('a revocation from after is undone, until it is made again', async () => {
    await gateway.awaitOutcome(revokedLater.keyFile, ALLOWED);
    expect(await stage.key(revokedLater.keyId)).toMatchObject({ status: 'active' });
    await stage.ctl('revoke', revokedLater.keyId);
    await gateway.awaitOutcome(revokedLater.keyFile, REVOKED);
  });

  it('a workload whose key is gone learns so, and enrolls anew', async () => {
    const { keyFile } = enrolledLater;
    const status = await stage.run(['status', '--key', keyFile, '--output', 'json']);
    expect([status.exitCode, JSON.parse(status.stdout).readiness]).toEqual([0, null]);
    expect(status.stderr).toMatch(/enrollment_unknown/);
    // The local state says that the key is current, but Control does not know the key.
    const again = await stage.enroll('billing', { keyFile, reuse: true });
    expect(again.keyId).not.toBe(enrolledLater.keyId);
    await gateway.awaitOutcome(keyFile, ALLOWED);
  });
});
