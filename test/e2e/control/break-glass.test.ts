/**
 * A real Control ends, real verifiers that followed it deny, a break-glass statement opens them, and Control comes back: once with a
 * verifier of one process, once with workers.
 */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ALLOWED,
  FollowedSite,
  type FollowingOptions,
  type FollowingVerifier,
  REVOKED,
} from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

const STALE = 'stale_bundle_fail_closed/stale 503';

let redis: TestRedisServer;
beforeAll(async () => {
  redis = await TestRedisServer.start();
});
afterAll(() => redis?.stop());

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly warning?: string;
}

async function checkOf({ readyUrl }: FollowingVerifier, name: string): Promise<Check | undefined> {
  const { checks }: { readonly checks: readonly Check[] } = JSON.parse((await httpGet(readyUrl)).text);
  return checks.find((check) => check.name === name);
}

/** Of every process. */
async function metricOf({ readyUrl }: FollowingVerifier, name: string): Promise<readonly number[]> {
  const { text } = await httpGet(readyUrl.replace('/readyz', '/metrics'));
  const found = text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'gm'));
  return [...found].map(([, value]) => Number(value));
}

describe.each<[string, () => Pick<FollowingOptions, 'flags' | 'replay'>]>([
  ['one process', () => ({ replay: 'memory' })],
  ['two workers', () => ({ replay: redis.url, flags: ['--workers', '2'] })],
])('a verifier of %s', (_what, optionsOf) => {
  let site: FollowedSite;
  afterAll(() => site?.stop());

  it('is opened by the statement, and closed by a revocation after Control came back', async () => {
    site = await FollowedSite.start({ targets: ['gateway'], maxStalenessSeconds: 5 });
    const { stage } = site;
    const at = (name: string) => join(stage.directory, name);
    await stage.run(['keygen', '--out', at('offline.pem'), '--public-out', at('offline.jwk.json')]);
    const { flags = [], replay } = optionsOf();
    const file = at('break-glass.jws');
    const verifier = await site.startVerifier({
      ...{ program: undefined, target: 'gateway', replay },
      flags: [...flags, '--break-glass-key', at('offline.jwk.json'), '--break-glass-file', file],
    });
    const { keyFile, keyId } = await stage.enroll('billing');
    await site.awaitOutcome(verifier, keyFile, ALLOWED);

    await stage.stopControl('SIGKILL');
    await site.awaitOutcome(verifier, keyFile, STALE);
    const signed = await stage.run([
      ...['bundle', 'break-glass', '--auth-site', SITE_ID, '--readyz', verifier.readyUrl],
      ...['--key', at('offline.pem'), '--for', '1h', '--out', at('new.jws')],
    ]);
    expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
    await rename(at('new.jws'), file);
    await site.awaitOutcome(verifier, keyFile, ALLOWED);
    await waitFor('the audit events', () =>
      verifier.auditLines.some((line) => line.includes('"break_glass":true')),
    );
    await waitFor('every process to take it', async () =>
      (await metricOf(verifier, 'proofgate_break_glass_active')).every((value) => value === 1),
    );
    expect(Math.max(...(await metricOf(verifier, 'proofgate_break_glass_decisions_total')))).toBeGreaterThan(
      0,
    );
    expect(await checkOf(verifier, 'break_glass')).toMatchObject({
      ok: true,
      warning: expect.stringMatching(/suspends the maximum age of the bundle until \S+Z$/),
    });
    // A worker tells the other process from time to time.
    await waitFor(
      'every process to be ready',
      async () => (await checkOf(verifier, 'freshness'))?.ok === true,
    );

    await stage.startControl();
    await waitFor('a statement of Control', async () =>
      (await checkOf(verifier, 'break_glass'))?.warning?.includes('(superseded)'),
    );
    await site.awaitOutcome(verifier, keyFile, ALLOWED);
    await stage.ctl('revoke', keyId, '--reason', 'test');
    await site.awaitOutcome(verifier, keyFile, REVOKED);
  });
});
