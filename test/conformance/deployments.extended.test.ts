/** `proofgate conformance` finds that each enforcement point conforms, as its user would run it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runProofgate } from '../support/harness/proofgate-command.ts';
import type { PointState } from '../support/points/conformance-case.ts';
import type { EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { profileFile } from '../support/site/profile-file.ts';
import { AUTHORITY } from '../support/site/routes.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { STANDARD_ROUTES } from '../support/site/standard-routes.ts';
import { NEWEST_POINTS } from './points.ts';
import { type PointStates, pointStates } from './states.ts';

let site: Site;
beforeAll(async () => {
  site = await createSite();
});
afterAll(() => site.remove());

const available = NEWEST_POINTS.filter((driver) => driver.unavailable?.() === undefined);

const STANDARD = [STANDARD_ROUTES.read, STANDARD_ROUTES.write, STANDARD_ROUTES.nonced];

async function runAt(
  driver: EnforcementPointDriver,
  state: PointState,
  runs: readonly (readonly [target: string, writeTarget: string, flags: readonly string[]])[],
): Promise<void> {
  const states: PointStates = pointStates(driver, site);
  try {
    const { point } = await states.of(state);
    const key = join(site.directory, `${driver.name}.pem`);
    const pem = site.derivedKeys.dk_billing.privateKey.export({ format: 'pem', type: 'pkcs8' });
    await writeFile(key, pem, { mode: 0o600 });
    const { address } = point;
    const profile = await profileFile(site, state === 'usual' ? undefined : STANDARD);
    for (const [target, writeTarget, flags] of runs) {
      point.upstream.clear();
      const origin = `http://${AUTHORITY}`;
      const run = await runProofgate([
        ...['conformance', '--target', `${origin}${target}`, '--write-target', `${origin}${writeTarget}`],
        ...['--key', key, '--profile-file', profile],
        ...['--connect-to', `${address.host}:${address.port}`, ...flags],
      ]);
      expect(run).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('every case was denied') });
      expect(point.upstream.requests).toHaveLength(1);
      expect(site.secrets.foundIn(run.stdout + run.stderr)).toEqual([]);
    }
  } finally {
    await states.stop();
  }
}

it.each(available)('$name', (driver) => runAt(driver, 'usual', [['/v1/orders/4711', '/v1/orders', []]]));

it.each(available)('$name, with the standard formats', (driver) =>
  runAt(driver, 'standard_proofs', [
    ['/v1/standard/4711', '/v1/standard', ['--proof', 'http-message-signatures']],
    ['/v1/standard/4711', '/v1/standard', ['--proof', 'dpop']],
    ['/v1/nonced/4711', '/v1/standard', ['--proof', 'dpop']],
  ]),
);
