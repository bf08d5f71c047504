/** `proofgate conformance` finds that each enforcement point conforms, as its user would run it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runProofgate } from '../support/harness/proofgate-command.ts';
import { profileFile } from '../support/site/profile-file.ts';
import { AUTHORITY } from '../support/site/routes.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { NEWEST_POINTS } from './points.ts';
import { type PointStates, pointStates } from './states.ts';

let site: Site;
beforeAll(async () => {
  site = await createSite();
});
afterAll(() => site.remove());

const available = NEWEST_POINTS.filter((driver) => driver.unavailable?.() === undefined);

it.each(available)('$name', async (driver) => {
  const states: PointStates = pointStates(driver, site);
  try {
    const { point } = await states.of('usual');
    const key = join(site.directory, `${driver.name}.pem`);
    const pem = site.derivedKeys.dk_billing.privateKey.export({ format: 'pem', type: 'pkcs8' });
    await writeFile(key, pem, { mode: 0o600 });
    const { address } = point;
    const origin = `http://${AUTHORITY}`;
    const run = await runProofgate([
      ...['conformance', '--target', `${origin}/v1/orders/4711`, '--write-target', `${origin}/v1/orders`],
      ...['--key', key, '--profile-file', await profileFile(site)],
      ...['--connect-to', `${address.host}:${address.port}`],
    ]);
    expect(run).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('every case was denied') });
    expect(point.upstream.requests).toHaveLength(1);
    expect(site.secrets.foundIn(run.stdout + run.stderr)).toEqual([]);
  } finally {
    await states.stop();
  }
});
