/**
 * A thousand proofs, each presented 64 times at once to two verifier processes on one Redis, a part of them through a real
 * Envoy: a thousand are accepted. Where the machine is so busy that an answer is lost, its proof may be used up and nobody told.
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
/** Of every so many proofs one has copies that go through Envoy, and so many of them. */
const ENVOY_EVERY = 20;
const ENVOY_COPIES = 4;
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

/** After these nobody knows whether the proof is used up: it is refused. */
const ANSWERS_LOST = ['verifier_unavailable/no_answer 503', 'replay_store_unavailable/store 503'];

it(`accepts ${PROOFS} of ${PROOFS} × ${COPIES}`, async () => {
  const ledger = new AcceptLedger(ANSWERS_LOST);
  const uncertain = new Set<string>();
  let minted = 0;
  const presentCopies = async () => {
    while (minted < PROOFS) {
      minted += 1;
      const proof = stage.source.mint();
      const present = async (door: Door) => {
        const outcome = await door.present(proof);
        ledger.record(proof.jti, door.name, outcome);
        if (ANSWERS_LOST.includes(outcome)) uncertain.add(proof.jti);
      };
      await Promise.all(doorsOfCopies(minted % ENVOY_EVERY === 0 ? ENVOY_COPIES : 0).map(present));
    }
  };
  await Promise.all(Array.from({ length: PROOFS_AT_ONCE }, presentCopies));
  const lost = [...uncertain].filter((jti) => !ledger.isAccepted(jti)).length;
  process.stdout.write(`copies: ${JSON.stringify({ lost, ...Object.fromEntries(ledger.outcomes) })}\n`);
  expect(ledger.doubles).toEqual([]);
  expect(ledger.unknown).toEqual([]);
  expect(ledger.acceptCount + lost).toBe(PROOFS);
  expect(lost).toBeLessThan(PROOFS / 20);
  expect(ledger.acceptsThrough('envoy')).toBeGreaterThan(0);
  expect(upstream.requests.length).toBe(ledger.acceptsThrough('envoy'));
}, 400_000);

function doorsOfCopies(envoyCopies: number): readonly Door[] {
  const grpcDoors = stage.verifiers.map(({ door }) => door);
  return Array.from({ length: COPIES }, (_, copy) => {
    const kind = copy < envoyCopies ? envoyDoors : grpcDoors;
    return kind[copy % kind.length];
  }).filter((door) => door !== undefined);
}
