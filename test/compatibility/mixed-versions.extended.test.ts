/**
 * Runs released programs with the programs under test: verifiers and command lines of both versions follow a Control of either
 * version, and verifiers of both share one Redis. Source: docs/operate/control-upkeep.md "Upgrade and rollback", docs/operate/replay.md "What is
 * kept".
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ALLOWED,
  FollowedSite,
  type FollowingVerifier,
  type Program,
  REPLAYED,
  REVOKED,
} from '../support/control/followed-site.ts';
import { TestRedisServer } from '../support/harness/redis-server.ts';
import { upgradableReleases } from '../support/harness/releases.ts';

const newest = upgradableReleases().at(-1)?.version;

describe.each(upgradableReleases())(
  'release $version and the program under test',
  ({ program: released, version }) => {
    const versions = [
      { name: 'released', other: 'current', program: released, otherProgram: undefined },
      { name: 'current', other: 'released', program: undefined, otherProgram: released },
    ] as const;

    describe.each(versions)(
      'under a $name Control, its site declared by the released command line',
      (control) => {
        let redis: TestRedisServer;
        let site: FollowedSite;
        const verifiers: { [name: string]: FollowingVerifier } = {};

        beforeAll(async () => {
          redis = await TestRedisServer.start();
          site = await FollowedSite.start({
            controlRelease: control.program,
            commandRelease: control.otherProgram,
            targets: versions.map(({ name }) => name),
          });
          for (const { name, program } of versions) {
            verifiers[name] = await site.startVerifier({ program, target: name, replay: redis.url });
          }
        });

        afterAll(async () => {
          await site?.stop();
          await redis?.stop();
        });

        const verifier = (name: string): FollowingVerifier => {
          const found = verifiers[name];
          if (found === undefined) throw new Error(`no verifier ${name}`);
          return found;
        };

        async function runBy<T>(program: Program, action: () => Promise<T>): Promise<T> {
          site.stage.commandRelease = program;
          return action();
        }

        /** With older releases, those of the other version than Control. */
        const commandLines = versions.filter(({ name }) => version === newest || name !== control.name);

        it.each(commandLines)(
          'a key of the $name command line passes once at each verifier, and at none when it is revoked',
          async ({ program }) => {
            const { keyFile, keyId } = await runBy(program, () => site.stage.enroll('billing'));
            for (const { name, other } of versions) {
              const proof = await site.awaitOutcome(verifier(name), keyFile, ALLOWED);
              expect(await verifier(name).present(proof)).toBe(REPLAYED);
              await site.awaitOutcome(verifier(other), keyFile, ALLOWED);
              expect(await verifier(other).present(proof)).toBe(REPLAYED);
            }
            await site.stage.ctl('revoke', keyId, '--reason', 'test');
            for (const { name } of versions) await site.awaitOutcome(verifier(name), keyFile, REVOKED);
          },
        );

        it.each(commandLines)(
          'a key of the $name command line serves the $other one: it reports, signs and renews',
          async ({ program, otherProgram }) => {
            const { keyFile, keyId } = await runBy(program, () => site.stage.enroll('billing'));
            const again = await runBy(otherProgram, async () => {
              await site.awaitOutcome(verifier('current'), keyFile, ALLOWED);
              const status = await site.stage.run(['status', '--key', keyFile, '--output', 'json']);
              expect(JSON.parse(status.stdout)).toMatchObject({
                derived_key: { key_id: keyId, status: 'active' },
              });
              return site.stage.enroll('billing', { keyFile, reuse: true, flags: ['--force-reenroll'] });
            });
            expect(again.keyId).not.toBe(keyId);
            await runBy(program, () => site.awaitOutcome(verifier('released'), keyFile, ALLOWED));
          },
        );
      },
    );
  },
);
