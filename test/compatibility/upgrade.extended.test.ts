/**
 * Opens data of a released program with the program under test: the database of Control, and the state directory of a
 * verifier, also after a rollback. Source: docs/operate/control-upkeep.md "Upgrade and rollback", docs/design/bundle.md "The state directory".
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { startInstance } from '../support/control/control-instance.ts';
import { ALLOWED, FollowedSite, type Program, REVOKED } from '../support/control/followed-site.ts';
import { freePort } from '../support/harness/free-port.ts';
import { TestPostgresServer } from '../support/harness/postgres-server.ts';
import { upgradableReleases } from '../support/harness/releases.ts';

const [TARGET, LATER_TARGET] = ['gateway', 'later'] as const;
const KEPT_KINDS = ['enrollments', 'keys', 'policies', 'sources', 'clients', 'routes', 'brokers'] as const;

let postgres: TestPostgresServer;
let site: FollowedSite | undefined;
beforeAll(async () => {
  postgres = await TestPostgresServer.start();
});
afterEach(async () => {
  await site?.stop();
  site = undefined;
});
afterAll(async () => postgres?.stop());

async function startSite(controlRelease: Program, databaseUrl?: string): Promise<FollowedSite> {
  const database = databaseUrl === undefined ? {} : { databaseUrl };
  site = await FollowedSite.start({ ...database, controlRelease, targets: [TARGET, LATER_TARGET] });
  return site;
}

/** Declares a broker with the command line of the release; applying it again changes nothing. */
async function declareBroker({ stage }: FollowedSite): Promise<void> {
  const declared = parse(await readFile(join(stage.directory, 'site.yaml'), 'utf8'));
  const broker = {
    issuer: 'https://broker.shop.example',
    trust_domain: 'shop.example',
    subject_prefixes: ['spiffe://shop.example/'],
    key_binding: 'attested_workload',
    keys: [
      {
        kid: 'broker-1',
        alg: 'Ed25519',
        jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
      },
    ],
  };
  const file = join(stage.directory, 'brokered.json');
  await writeFile(file, JSON.stringify({ ...declared, brokers: [broker] }));
  await stage.ctl('apply', '-f', file);
  expect(await stage.ctl('apply', '-f', file)).toMatchObject({ steps: [] });
  await writeFile(
    file,
    JSON.stringify({ ...declared, brokers: [{ ...broker, max_passport_ttl_seconds: 60 }] }),
  );
  await stage.ctl('apply', '-f', file);
}

const newest = upgradableReleases().at(-1)?.version;

describe.each(upgradableReleases())('release $version', ({ program: released, version }) => {
  const isNewest = version === newest;

  // The next test migrates PostgreSQL from older releases.
  it.each(isNewest ? ['sqlite', 'postgres'] : ['sqlite'])(
    'leaves a %s database that Control opens, with its enrollments, keys and bundles',
    async (database) => {
      const followed = await startSite(
        released,
        database === 'postgres' ? await postgres.createDatabase() : undefined,
      );
      const { stage } = followed;
      await declareBroker(followed);
      const list = () => Promise.all(KEPT_KINDS.map((kind) => stage.list(kind)));
      const verifier = await followed.startVerifier({ program: released, target: TARGET, replay: 'memory' });
      const active = await stage.enroll('billing');
      const revoked = await stage.enroll('billing');
      await stage.ctl('revoke', revoked.keyId, '--reason', 'test');
      await followed.awaitOutcome(verifier, active.keyFile, ALLOWED);
      await followed.awaitOutcome(verifier, revoked.keyFile, REVOKED);
      const kept = await list();

      const connection = ['--control-url', stage.controlUrl, '--token-file', stage.tokenFile];
      const file = join(stage.directory, 'site.yaml');
      const applied = await stage.run(['ctl', 'apply', '-f', file, ...connection]);
      expect([applied.exitCode, applied.stderr]).toEqual([0, '']);
      await stage.stopControl();
      await stage.startControl({ release: undefined });

      expect(await list()).toMatchObject(kept);
      const next = await stage.enroll('billing');
      const later = await followed.startVerifier({
        program: undefined,
        target: LATER_TARGET,
        replay: 'memory',
      });
      for (const each of [verifier, later]) {
        await followed.awaitOutcome(each, next.keyFile, ALLOWED);
        await followed.awaitOutcome(each, active.keyFile, ALLOWED);
        await followed.awaitOutcome(each, revoked.keyFile, REVOKED);
      }
      await stage.ctl('revoke', active.keyId, '--reason', 'test');
      for (const each of [verifier, later]) await followed.awaitOutcome(each, active.keyFile, REVOKED);
    },
  );

  it('serves on over PostgreSQL beside the Control that replaces it', async () => {
    const followed = await startSite(released, await postgres.createDatabase());
    const { stage } = followed;
    const verifier = await followed.startVerifier({ program: released, target: TARGET, replay: 'memory' });
    const kept = await stage.enroll('billing');
    const dataDirectory = join(stage.directory, 'data-beside');
    await mkdir(dataDirectory);
    const flags = ['--master-key-file', join(stage.dataDirectory, 'master-key')];
    const changes = { port: await freePort(), dataDirectory, flags, release: undefined };
    const beside = await startInstance(stage.instanceSettings(changes));
    try {
      const first = await stage.enroll('billing');
      for (const { keyFile } of [kept, first]) await followed.awaitOutcome(verifier, keyFile, ALLOWED);
      await stage.ctl('revoke', first.keyId, '--reason', 'test');
      await followed.awaitOutcome(verifier, first.keyFile, REVOKED);
    } finally {
      await beside.stop();
    }
  });

  it.each([
    { direction: 'an upgrade', from: released, to: undefined },
    ...(isNewest ? [{ direction: 'a rollback', from: undefined, to: released }] : []),
  ])(
    'shares the state directory of a verifier: $direction without Control decides as before, and accepts no proof again',
    async ({ from, to }) => {
      const followed = await startSite(undefined);
      const { stage } = followed;
      const before = await followed.startVerifier({ program: from, target: TARGET, replay: 'memory' });
      const active = await stage.enroll('billing');
      const revoked = await stage.enroll('billing');
      await stage.ctl('revoke', revoked.keyId, '--reason', 'test');
      await followed.awaitOutcome(before, revoked.keyFile, REVOKED);
      const consumed = await followed.awaitOutcome(before, active.keyFile, ALLOWED);

      await stage.stopControl();
      await before.stop();
      const after = await followed.startVerifier({ program: to, target: TARGET, replay: 'memory' });

      expect(await after.present(consumed)).toBe('replay_store_unavailable/fenced 503');
      await followed.awaitOutcome(after, active.keyFile, ALLOWED);
      await followed.awaitOutcome(after, revoked.keyFile, REVOKED);
    },
  );
});
