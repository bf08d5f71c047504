/** When a policy counts as one whose keys nobody renews: never while somebody still may in time, and until an hour after. */
import { expect, it } from '@jest/globals';
import { isNotRenewed } from '../../src/cli/control/renewal-reading.ts';
import { refreshFromMs } from '../../src/client/enroll/enrollment-state.ts';

const LAST_END_SECONDS = 1_800_000_000;
const DEFAULT_SKEW_MS = 300_000;
/** The latest that chance lets the agent begin, in shares of what is left then. */
const LATEST_SHARE = 0.75;

it.each([60, 600, 3600, 86_400])('a key of %i s', (lifeSeconds) => {
  const policy = { maxKeyLifetimeSeconds: lifeSeconds, lastEndSeconds: LAST_END_SECONDS };
  const at = (secondsAfterEnd: number) => isNotRenewed(policy, LAST_END_SECONDS + secondsAfterEnd);
  const createdAtMs = (LAST_END_SECONDS - lifeSeconds) * 1000;
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
