/** Control shows that two verifiers of a site use two Redis, where a proof is accepted twice, and that they use one again. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { CACHE } from '../../support/chart/chart.ts';
import { adminUrl } from '../../support/control/control-instance.ts';
import { ALLOWED, FollowedSite, REPLAYED } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { httpGet, machineSlowness, waitFor } from '../../support/wait.ts';

const VERSION = /^\d+\.\d+\.\d+$/;
/** Two polls, one of which may wait, and the interval at which Control writes what it saw. */
const SHOWN_WITHIN_MS = 60_000;

let servers: readonly TestRedisServer[] = [];
let site: FollowedSite;
beforeAll(async () => {
  servers = await Promise.all([TestRedisServer.start(), TestRedisServer.start()]);
  site = await FollowedSite.start({ targets: ['west', 'east'] });
});
afterAll(async () => {
  await site?.stop();
  await Promise.all(servers.map((server) => server.stop()));
});

/** A verifier on the server of that number. */
const start = (target: string, server: number) =>
  site.startVerifier({ program: undefined, target, replay: servers[server]?.url ?? '' });

async function awaitStores(count: number): Promise<void> {
  await waitFor(`${count} replay stores`, async () => {
    const { replay_stores } = await site.stage.get(`/v1/sites/${SITE_ID}/propagation`);
    return replay_stores === count ? true : undefined;
  });
}

/** Applies the site file with that member. */
async function setStores(expected: Stores['expected']): Promise<void> {
  const { directory } = site.stage;
  const file = join(directory, 'changed.yaml');
  const text = await readFile(join(directory, 'site.yaml'), 'utf8');
  await writeFile(file, text.replace('skew_seconds', `replay_stores: ${expected}\n  skew_seconds`));
  await site.stage.ctl('apply', '-f', file, '--token-dir', directory);
}

interface Stores {
  readonly stores: number;
  readonly expected: 'one' | 'per_region';
}

/** Whether the alert's expression holds for what Control serves now, in Prometheus' own engine where it is installed. */
async function expectAlert(isFiring: boolean, { stores, expected }: Stores): Promise<void> {
  const metrics = await httpGet(String(adminUrl(site.stage.control.stderrLines, '/metrics')));
  const labels = `site_id="${SITE_ID}",expected="${expected}"`;
  expect(metrics.text).toContain(`proofgate_control_replay_stores{${labels}} ${stores}\n`);
  const checkRules = `${CACHE}/bin/check-rules`;
  if (!existsSync(checkRules)) return;
  const scrape = join(site.stage.directory, 'scrape');
  await writeFile(scrape, metrics.text);
  const rules = checkoutPath('helm/proofgate/files/control-alerts.yaml');
  const { stdout } = spawnSync(checkRules, ['--scrape', scrape, rules], { encoding: 'utf8' });
  expect(stdout.split('\n').includes('ProofgateReplayStores')).toBe(isFiring);
}

it('two Redis of one site are shown, each of which accepts a proof', async () => {
  const west = await start('west', 0);
  let east = await start('east', 1);
  const startedMs = performance.now();
  await awaitStores(2);
  expect((performance.now() - startedMs) / machineSlowness()).toBeLessThan(SHOWN_WITHIN_MS);
  await expectAlert(true, { stores: 2, expected: 'one' });
  const { targets } = await site.stage.ctl('get', 'propagation', SITE_ID);
  const instance = {
    version: expect.stringMatching(VERSION),
    replay_store: expect.any(String),
    silent: false,
  };
  expect(targets).toMatchObject([{ instances: [instance] }, { instances: [instance] }]);

  const { keyFile } = await site.stage.enroll('billing');
  const proof = await site.awaitOutcome(west, keyFile, ALLOWED);
  await site.awaitOutcome(east, keyFile, ALLOWED);
  expect(await east.present(proof)).toBe(ALLOWED);
  expect(await west.present(proof)).toBe(REPLAYED);

  await setStores('per_region');
  await expectAlert(false, { stores: 2, expected: 'per_region' });
  await setStores('one');
  await expectAlert(true, { stores: 2, expected: 'one' });

  await east.stop();
  east = await start('east', 0);
  await awaitStores(1);
  await expectAlert(false, { stores: 1, expected: 'one' });
  expect(await east.present(await site.awaitOutcome(west, keyFile, ALLOWED))).toBe(REPLAYED);
});
