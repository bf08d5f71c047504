/**
 * Tests when Control counts a policy as not renewed: never while an agent may still renew in time, and for an hour afterwards.
 */
import { afterAll, describe, expect, it } from '@jest/globals';
import { refreshFromMs } from '../../../src/caller/enroll/enrollment-state.ts';
import { isNotRenewed } from '../../../src/control/keys/key-renewal.ts';
import { readRenewals } from '../../../src/control/program/control-readiness.ts';
import { clientRow, keyRow, NOW_SECONDS, policyRow, sourceRow } from '../../support/control/store-rows.ts';
import { databaseKinds } from '../store/databases.ts';
import { benchOf } from '../store/repositories/bench.ts';

const LAST_END_SECONDS = 1_800_000_000;
const DEFAULT_SKEW_MS = 300_000;
/** The latest random start of the agent's renewal, as a share of the remaining time. */
const LATEST_SHARE = 0.75;

it.each([60, 600, 3600, 86_400])('a key of %i s', (lifeSeconds) => {
  const createdAtMs = (LAST_END_SECONDS - lifeSeconds) * 1000;
  const key = { createdAtMs, expiresAtSeconds: LAST_END_SECONDS };
  const at = (secondsAfterEnd: number) => isNotRenewed(key, LAST_END_SECONDS + secondsAfterEnd);
  const dueMs = refreshFromMs(
    { createdAtMs, key: { expiresAtMs: LAST_END_SECONDS * 1000 } },
    DEFAULT_SKEW_MS,
  );
  const latestSeconds = ((dueMs - LAST_END_SECONDS * 1000) * LATEST_SHARE) / 1000;
  expect([-lifeSeconds, latestSeconds, -1, 0, 3599, 3600].map(at)).toEqual([
    ...[false, false],
    ...[true, true, true],
    false,
  ]);
});

describe('a key that lives shorter than its policy lets keys live', () => {
  const sqlite = databaseKinds().filter(({ name }) => name === 'sqlite');
  afterAll(() => Promise.all(sqlite.map((database) => database.stop())));

  it('is held to its own life', async () => {
    const [open] = await Promise.all(sqlite.map((database) => database.fresh()));
    if (open === undefined) throw new Error('no database');
    const store = await open();
    try {
      const { write, ground } = benchOf(() => store);
      const { siteId } = await ground();
      const source = sourceRow(siteId);
      const policy = { ...policyRow(source, 'billing'), maxKeyLifetimeSeconds: 86_400 };
      const key = keyRow(siteId, { policyId: policy.id, expiresAtSeconds: NOW_SECONDS + 600 });
      await write(async (tx) => {
        await tx.clients.add(clientRow(siteId, 'billing'));
        await tx.sources.add(source);
        await tx.policies.add(policy);
        await tx.keys.add(key);
      });
      const at = (seconds: number) => readRenewals(store, () => (NOW_SECONDS + seconds) * 1000);
      // The agent starts renewal 90 to 67 s before such a key expires.
      expect(await at(600 - 60)).toEqual([{ siteId, policiesNotRenewed: 0 }]);
      expect(await at(600 - 30)).toEqual([{ siteId, policiesNotRenewed: 1 }]);
    } finally {
      await store.close();
    }
  });
});
