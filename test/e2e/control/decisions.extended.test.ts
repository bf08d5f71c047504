/** What a verifier with workers decides is shown by Control within two minutes: by reason, route and target, and the last use of keys. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ALLOWED, FollowedSite, REPLAYED } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitFor } from '../../support/wait.ts';

const MINUTE_MS = 60_000;
const UNSIGNED = 'invalid_request_proof/authorization_missing 401';

let server: TestRedisServer;
let site: FollowedSite;
beforeAll(async () => {
  server = await TestRedisServer.start();
  site = await FollowedSite.start({ targets: ['edge'] });
});
afterAll(async () => {
  await site?.stop();
  await server.stop();
});

/** Totals by name, of the hour. */
async function totals(by: string): Promise<Readonly<Record<string, number>>> {
  const { series } = await site.stage.get(`/v1/sites/${SITE_ID}/decisions?step=hour&by=${by}`);
  const rows: readonly { readonly name: string; readonly total: number }[] = Array.isArray(series)
    ? series
    : [];
  return Object.fromEntries(rows.map(({ name, total }) => [name, total]));
}

it('counts of all workers reach Control', async () => {
  const flags = ['--workers', '2'];
  const verifier = await site.startVerifier({
    program: undefined,
    target: 'edge',
    replay: server.url,
    flags,
  });
  const { keyFile, keyId } = await site.stage.enroll('billing');
  const { keyId: unused } = await site.stage.enroll('reporting');
  const startedMs = Date.now();
  const proof = await site.awaitOutcome(verifier, keyFile, ALLOWED);
  expect(await verifier.present(proof)).toBe(REPLAYED);
  for (let requests = 0; requests < 5; requests += 1) {
    expect(await verifier.present(site.request())).toBe(UNSIGNED);
  }
  const expected = { jti_replay: 1, 'invalid_request_proof/authorization_missing': 5 };
  await waitFor('the reasons', async () => {
    const shown = await totals('reason');
    return Object.entries(expected).every(([name, total]) => shown[name] === total);
  });
  expect(await totals('outcome')).toMatchObject({ allowed: 1, observed: 0 });
  const { decisions } = await sumByTarget();
  expect(decisions).toBeGreaterThanOrEqual(7);
  const { last_used_at: usedAt } = await waitFor('the last use', async () => {
    const key = await site.stage.key(keyId);
    return key.last_used_at === undefined ? undefined : key;
  });
  const usedMs = Date.parse(String(usedAt));
  expect(usedMs % MINUTE_MS).toBe(0);
  expect(usedMs).toBeGreaterThan(startedMs - MINUTE_MS);
  expect(usedMs).toBeLessThanOrEqual(Date.now());
  expect(await site.stage.key(unused)).not.toHaveProperty('last_used_at');
  // Also by the commands.
  expect(await site.stage.ctl('get', 'last-used', keyId)).toMatchObject({
    targets: [{ name: 'edge', last_used_at: usedAt }],
  });
  expect(await site.stage.ctl('get', 'decisions', SITE_ID)).toMatchObject({ step: 'minute', by: 'outcome' });
});

async function sumByTarget(): Promise<{ readonly decisions: number | undefined }> {
  const byTarget = await totals('target');
  expect(Object.keys(byTarget)).toEqual(['edge']);
  return { decisions: byTarget.edge };
}
