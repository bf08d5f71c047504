/**
 * A thousand proofs, each presented 64 times at once to two verifier processes on one Redis, a part of them through a real
 * Envoy: a thousand are accepted.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TestRedisServer } from '../../fakes/redis-server.ts';
import { envoyVersions, startEnvoy } from '../harness/envoy.ts';
import { http1Client } from '../harness/http1.ts';
import { http2Client } from '../harness/http2.ts';
import { closeAtOnce } from '../harness/stand.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { AcceptLedger } from './accept-ledger.ts';
import { type Door, envoyDoor } from './doors.ts';
import { ReplayStage } from './replay-stage.ts';

const PROOFS = 1_000;
const COPIES = 64;
/** Copies of a proof that go through Envoy. */
const ENVOY_COPIES = 2;
/** Proofs whose copies are on their way at one time. */
const PROOFS_AT_ONCE = 4;

let stage: ReplayStage;
let upstream: Upstream;
let envoyDoors: readonly Door[];
beforeAll(async () => {
  stage = await ReplayStage.set();
  const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  stage.endsWith(() => redis.stop());
  // Copies wait for each other on two cores; what is late would be refused, and so be no test.
  await stage.startTwo(redis.url, { redisTimeout: '5s' });
  upstream = await startUpstream({});
  stage.endsWith(() => upstream.stop());
  const [{ host, port } = { host: '', port: 0 }] = stage.verifiers;
  const envoy = await startEnvoy(envoyVersions[1], {
    verifier: { kind: 'tcp', host, port },
    upstream: { host: upstream.host, port: upstream.port, http2: false },
    optionalBlocks: false,
    edits: [closeAtOnce],
  });
  stage.endsWith(() => envoy.stop());
  const address = { host: envoy.host, port: envoy.port };
  envoyDoors = [
    envoyDoor('envoy, HTTP/1.1', http1Client(address)),
    envoyDoor('envoy, HTTP/2', http2Client(address)),
  ];
}, 60_000);
afterAll(() => stage?.strike());

it(`accepts ${PROOFS} of ${PROOFS} × ${COPIES}`, async () => {
  // Envoy waits a while for an answer; a busy machine may be late, and the proof is used up all the same.
  const ledger = new AcceptLedger(['verifier_unavailable/no_answer 503']);
  const grpcDoors = stage.verifiers.map(({ door }) => door);
  const doors = Array.from({ length: COPIES }, (_, copy) => {
    const kind = copy < ENVOY_COPIES ? envoyDoors : grpcDoors;
    return kind[copy % kind.length];
  });
  let minted = 0;
  const presentCopies = async () => {
    while (minted < PROOFS) {
      minted += 1;
      const proof = stage.source.mint();
      await Promise.all(
        doors.map(async (door) => {
          if (door !== undefined) ledger.record(proof.jti, door.name, await door.present(proof));
        }),
      );
    }
  };
  await Promise.all(Array.from({ length: PROOFS_AT_ONCE }, presentCopies));
  process.stdout.write(`copies: ${JSON.stringify(Object.fromEntries(ledger.outcomes))}\n`);
  expect(ledger.doubles).toEqual([]);
  expect(ledger.unknown).toEqual([]);
  const allowed = await Promise.all(stage.verifiers.map((verifier) => verifier.allowedCount()));
  expect(allowed.reduce((sum, count) => sum + count)).toBe(PROOFS);
  const answersLost = ledger.count('verifier_unavailable/no_answer 503');
  expect(ledger.acceptCount).toBeGreaterThanOrEqual(PROOFS - answersLost);
  expect(ledger.count('jti_replay 403')).toBeGreaterThanOrEqual(PROOFS * (COPIES - 1) - answersLost);
  expect(upstream.requests.length).toBe(ledger.acceptsThrough('envoy'));
}, 300_000);
