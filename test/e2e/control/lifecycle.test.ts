/**
 * Tests the whole life of a key, from a workload's token to denial, through real processes: issuer, Control, verifier,
 * Envoy. The command line runs here.
 * Source: specification "States and transitions", "Expected outcomes of verification".
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../../src/protocol/strict-json.ts';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { FollowedGateway } from '../../support/control/followed-gateway.ts';
import { AUDIENCE, SITE_ID } from '../../support/control/site-declaration.ts';
import {
  type ServiceAccountIssuer,
  startServiceAccountIssuer,
} from '../../support/fakes/service-account-issuer.ts';
import { errorCode } from '../../support/harness/proofgate-command.ts';
import { machineSlowness, waitFor } from '../../support/wait.ts';

const ALLOWED = { status: 200, reason: '' };
const REVOKED = { status: 401, reason: 'invalid_request_proof', detail: 'key_revoked' };

const EXPECTED_IN_AUDIT = [
  ['site', 'create'],
  ['source_revision', 'activate'],
  ['enrollment', 'approve'],
  ['derived_key', 'revoke'],
] as const;

let stage: ControlStage;
let gateway: FollowedGateway;
let cluster: ServiceAccountIssuer;
beforeAll(async () => {
  stage = await ControlStage.start();
  const certificate = stage.issuerCertificate;
  cluster = await startServiceAccountIssuer({ certificate, hostname: '127.0.0.1' });
  gateway = await FollowedGateway.start(stage);
});
afterAll(async () => {
  await gateway?.stop();
  await cluster?.close();
  await stage?.stop();
});

async function theSource(): Promise<JsonObject> {
  const [source] = await stage.list('sources');
  if (source === undefined) throw new Error('there is no source');
  return source;
}

async function keyCount(): Promise<number> {
  return (await stage.list('keys')).length;
}

describe('a key', () => {
  it('is issued for a token alone, and its requests pass with its client’s grants, no more', async () => {
    const { keyFile, status, keyId } = await stage.enroll('billing');
    expect(status).toBe('active');
    await gateway.awaitOutcome(keyFile, ALLOWED);
    await expect(
      gateway.send(keyFile, { method: 'POST', target: '/v1/orders', body: '{}' }),
    ).resolves.toMatchObject(ALLOWED);
    const ungranted = await stage.run([
      ...['request', 'GET', `${gateway.origin}/v1/payouts/7`, '--key', keyFile],
    ]);
    expect(ungranted.exitCode).not.toBe(0);
    const arrived = gateway.upstream.requests.at(0);
    expect(headerValues(arrived?.headers ?? [], 'x-proofgate-key-id')).toEqual([keyId]);
  });

  it('of a reading client does not write', async () => {
    const { keyFile } = await stage.enroll('reporting');
    await gateway.awaitOutcome(keyFile, ALLOWED);
    const enrollment = JSON.parse(await readFile(`${keyFile}.enrollment.json`, 'utf8'));
    const profiles: readonly JsonObject[] =
      enrollment.enrolled.signing_profiles ?? enrollment.enrolled.profiles;
    expect(profiles.map(({ route_id }) => route_id)).toEqual(['orders-read']);
  });

  it('that is revoked is denied, and its public key never enrolls again', async () => {
    const { keyFile, keyId } = await stage.enroll('billing');
    await gateway.awaitOutcome(keyFile, ALLOWED);
    await stage.ctl('revoke', keyId, '--reason', 'test');
    await gateway.awaitOutcome(keyFile, REVOKED);
    expect(await stage.key(keyId)).toMatchObject({ status: 'revoked' });
    const status = await stage.run(['status', '--key', keyFile, '--output', 'json']);
    expect(JSON.parse(status.stdout)).toMatchObject({
      derived_key: { status: 'revoked', refresh_due: true },
    });
    const again = await stage.tryEnroll('billing', { keyFile, reuse: true, flags: ['--force-reenroll'] });
    expect([again.exitCode, errorCode(again)]).toEqual([3, 'key_revoked']);
  });

  it('expires with its token, and is denied', async () => {
    const expiresInSeconds = Math.ceil(12 * machineSlowness());
    const tokenFile = await stage.tokenFor('billing', { expiresInSeconds });
    const { keyFile, expiresAt } = await stage.enroll('billing', { tokenFile });
    expect(Date.parse(expiresAt)).toBeLessThan(Date.now() + (expiresInSeconds + 1) * 1000);
    await gateway.awaitOutcome(keyFile, ALLOWED);
    // The client would refuse to sign, so this request bypasses it and tests the verifier.
    await waitFor('the key to expire', () => (Date.now() > Date.parse(expiresAt) + 1500 ? true : undefined));
    const outcome = await gateway.sendExpired(keyFile);
    expect(outcome).toMatchObject({ status: 401, reason: 'invalid_request_proof' });
    expect(['key_expired', 'key_unknown']).toContain(outcome.detail);
  });

  it('lives no longer than its policy says', async () => {
    const { expiresAt } = await stage.enroll('brief');
    expect(Date.parse(expiresAt)).toBeLessThanOrEqual(Date.now() + 60_000);
  });
});

describe('enrolling again', () => {
  it('does nothing while the key is current, and makes another key ID on request', async () => {
    const first = await stage.enroll('billing');
    const before = await keyCount();
    const second = await stage.enroll('billing', { keyFile: first.keyFile, reuse: true });
    expect(second.keyId).toBe(first.keyId);
    expect(await keyCount()).toBe(before);
    const forced = await stage.enroll('billing', {
      keyFile: first.keyFile,
      reuse: true,
      flags: ['--force-reenroll'],
    });
    expect(forced.keyId).not.toBe(first.keyId);
    await gateway.awaitOutcome(first.keyFile, ALLOWED);
    expect(await stage.key(first.keyId)).toMatchObject({ status: 'active' });
  });

  it('happens by itself when the key nears its end', async () => {
    const expiresInSeconds = Math.ceil(20 * machineSlowness());
    const tokenFile = await stage.tokenFor('billing', { expiresInSeconds });
    const first = await stage.enroll('billing', { tokenFile });
    // 15 % of its life before the end, at most; each attempt before that would be a process in vain.
    const endMs = Date.parse(first.expiresAt);
    await waitFor('the end to be near', () => endMs - Date.now() < expiresInSeconds * 200);
    const again = await waitFor('another key', async () => {
      const startedAtMs = Date.now();
      const enrolled = await stage.enroll('billing', { keyFile: first.keyFile, reuse: true });
      return enrolled.keyId === first.keyId ? undefined : { ...enrolled, startedAtMs };
    });
    expect(endMs).toBeGreaterThan(again.startedAtMs);
    await gateway.awaitOutcome(again.keyFile, ALLOWED);
  });

  it('with a token that enrolled all its keys is refused', async () => {
    const tokenFile = await stage.tokenFor('single');
    await stage.enroll('single', { tokenFile });
    const second = await stage.tryEnroll('single', { tokenFile });
    expect([second.exitCode, errorCode(second)]).toEqual([3, 'token_key_limit']);
  });
});

describe('approval', () => {
  it('by an operator: pending, then issued', async () => {
    const pending = await stage.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
    expect(pending.exitCode).toBe(4);
    const [enrollment] = (await stage.list('enrollments')).filter(
      ({ state }) => state === 'pending_approval',
    );
    await stage.ctl('approve', String(enrollment?.enrollment_id));
    const { keyFile } = pending;
    await stage.enroll('reviewed', { keyFile, reuse: true });
    await gateway.awaitOutcome(keyFile, ALLOWED);
  });

  it('refused: denied for good, no key', async () => {
    const before = await keyCount();
    const pending = await stage.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
    const [enrollment] = (await stage.list('enrollments')).filter(
      ({ state }) => state === 'pending_approval',
    );
    await stage.ctl('deny', String(enrollment?.enrollment_id), '--reason', 'not ours');
    const denied = await stage.tryEnroll('reviewed', { keyFile: pending.keyFile, reuse: true });
    expect(denied.exitCode).toBe(3);
    expect(await keyCount()).toBe(before);
    const late = await stage.tryCtl('approve', String(enrollment?.enrollment_id));
    expect([late.exitCode, errorCode(late)]).toEqual([3, 'enrollment_state_conflict']);
  });
});

describe('the source', () => {
  it('keeps enrolling while its issuer’s keys rotate', async () => {
    stage.issuer.rotate();
    await stage.enroll('billing');
    stage.issuer.dropOldKeys();
    await stage.enroll('billing');
  });

  it('suspended: no new enrollments, living keys pass on; resumed: both', async () => {
    const { keyFile } = await stage.enroll('billing');
    await gateway.awaitOutcome(keyFile, ALLOWED);
    const sourceId = String((await theSource()).source_id);
    await stage.ctl('suspend', sourceId);
    const refused = await stage.tryEnroll('billing');
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'source_not_active']);
    await expect(gateway.send(keyFile)).resolves.toMatchObject(ALLOWED);
    await stage.ctl('resume', sourceId);
    await stage.awaitSource(sourceId, 'active');
    await stage.enroll('billing');
  });

  it('with a newer active revision outdates the policies of the older', async () => {
    const source = await theSource();
    const sourceId = String(source.source_id);
    const policy = await stage.policy('billing');
    await stage.activateNewRevision(sourceId);
    const refused = await stage.tryEnroll('billing');
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'policy_revision_outdated']);
    // Declaring the site again moves its policies.
    await stage.applySite({ origin: gateway.origin, targets: ['gateway'] });
    const moved = await stage.policy('billing');
    expect(moved.source_revision).toBe(Number(policy.source_revision) + 1);
    await stage.enroll('billing');
  });

  it('gives way to another cluster’s: rebound, the same reference enrolls there; the old key passes on', async () => {
    const old = await stage.enroll('reporting');
    await gateway.awaitOutcome(old.keyFile, ALLOWED);
    const { reference } = await stage.policy('reporting');
    const { issuer, jwksUri: jwks_uri } = cluster;
    const api = await stage.api();
    const coordinates = { issuer, jwks_uri, audience: AUDIENCE };
    const creation = { kind: 'oidc_jwks', display_name: 'new cluster', ...coordinates };
    const { body } = await api.create(`/v1/sites/${SITE_ID}/sources`, { body: creation });
    await api.close();
    const sourceId = String(body.source_id);
    await stage.ctl('validate', sourceId);
    await stage.ctl('activate', sourceId, '--expect-scope', new URL(issuer).host);
    await stage.awaitSource(sourceId, 'active');
    const rebind = ['rebind', 'reporting', '--site', SITE_ID, '--source', 'new cluster', '--expect-issuer'];
    const refused = await stage.tryCtl(...rebind, stage.issuer.issuer);
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'policy_issuer_mismatch']);
    expect(await stage.ctl(...rebind, issuer)).toMatchObject({ reference, source_id: sourceId });
    const left = await stage.tryEnroll('reporting');
    expect([left.exitCode, errorCode(left)]).toEqual([3, 'token_key_unknown']);
    const tokenFile = join(stage.directory, 'new-cluster.token');
    const subject = { namespace: 'prod', serviceAccount: 'reporting', audience: AUDIENCE };
    await writeFile(tokenFile, cluster.token(subject), { mode: 0o600 });
    const { keyFile } = await stage.enroll('reporting', { tokenFile });
    await gateway.awaitOutcome(keyFile, ALLOWED);
    await expect(gateway.send(old.keyFile)).resolves.toMatchObject(ALLOWED);
  });
});

describe('propagation', () => {
  it('is reported by readiness: each condition, and all of them in the end', async () => {
    const { keyFile, keyId } = await stage.enroll('billing');
    const ready = await waitFor('the key to be ready', async () => {
      const readiness = await stage.get(`/v1/derived-keys/${keyId}/readiness`);
      return readiness.ready === true ? readiness : undefined;
    });
    const conditions = Array.isArray(ready.conditions) ? ready.conditions : [];
    expect(conditions.map((each: JsonObject) => [each.condition, each.satisfied])).toEqual(
      ['derived_key', 'route_grant', 'signing_profile', 'target_acknowledged', 'version_current'].map(
        (name) => [name, true],
      ),
    );
    const status = await stage.run(['status', '--key', keyFile, '--output', 'json']);
    expect(JSON.parse(status.stdout)).toMatchObject({
      derived_key: { key_id: keyId },
      readiness: { ready: true },
    });
  });

  it('survives a verifier’s restart while Control is down, and Control’s', async () => {
    const { keyFile } = await stage.enroll('billing');
    await gateway.awaitOutcome(keyFile, ALLOWED);
    await stage.stopControl('SIGKILL');
    await gateway.stopVerifier();
    await gateway.startVerifier();
    await gateway.awaitOutcome(keyFile, ALLOWED);
    await stage.startControl();
    const next = await stage.enroll('billing');
    await gateway.awaitOutcome(next.keyFile, ALLOWED);
  });
});

describe('in the end', () => {
  it('a source with `revoke` retires with its keys, and capacity is given back', async () => {
    const { keyFile } = await stage.enroll('billing');
    await gateway.awaitOutcome(keyFile, ALLOWED);
    const sourceId = String((await theSource()).source_id);
    await stage.setOnRetire(sourceId, 'revoke');
    await stage.ctl('retire', sourceId);
    await gateway.awaitOutcome(keyFile, REVOKED);
    const refused = await stage.tryEnroll('billing');
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'source_not_active']);
  });

  it('no secret stands in any output, log, metric or argument', () => {
    expect(stage.secrets.foundIn(stage.outputs())).toEqual([]);
    expect(stage.secrets.foundIn(gateway.outputs())).toEqual([]);
  });

  it('the audit trail names who did what', async () => {
    const { items } = await stage.ctl('get', 'audit');
    const kinds = new Set((Array.isArray(items) ? items : []).map(({ kind }: JsonObject) => kind));
    for (const [resource, verb] of EXPECTED_IN_AUDIT) {
      expect(
        [...kinds].some((kind) =>
          new RegExp(`^proofgate\\.control\\.${resource}\\.${verb}`).test(String(kind)),
        ),
      ).toBe(true);
    }
    expect(stage.secrets.foundIn(JSON.stringify(items))).toEqual([]);
  });
});
