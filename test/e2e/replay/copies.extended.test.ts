/**
 * Presents proofs, each 64 times at once, to two verifier processes on one Redis, some of them through a real Envoy: each is
 * accepted once. On a busy test machine an accept may be lost on its way to the caller. Redis holds its record, so it counts.
 * `PROOFGATE_TEST_COPIED_PROOFS` sets the number of proofs (`make soak`).
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { envoyVersions, startEnvoy } from '../../support/harness/envoy.ts';
import { closeAtOnce, patient } from '../../support/harness/envoy-config.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { AcceptLedger } from './accept-ledger.ts';
import type { Proof } from './proof-source.ts';
import { ReplayStage } from './replay-fixture.ts';
import { envoyTarget, type Target } from './targets.ts';

const PROOFS = Number(process.env.PROOFGATE_TEST_COPIED_PROOFS ?? 200);
const COPIES = 64;
/** Of every so many proofs one has copies that go through Envoy, and so many of them. */
const ENVOY_EVERY = 20;
const ENVOY_COPIES = 4;
/** Proofs whose copies are on their way at one time. */
const PROOFS_AT_ONCE = 4;

let stage: ReplayStage;
let redis: TestRedisServer;
let upstream: Upstream;
let envoyTargets: readonly Target[];
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
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
    edits: [closeAtOnce, ...patient],
  });
  stage.endsWith(() => envoy.stop());
  const address = { host: envoy.host, port: envoy.port };
  envoyTargets = [
    envoyTarget('envoy, HTTP/1.1', http1Client(address)),
    envoyTarget('envoy, HTTP/2', http2Client(address)),
  ];
});
afterAll(() => stage?.strike());

/** Answers on whose way an accept may have been lost. */
const LOST_ON_THE_WAY: readonly string[] = [
  'verifier_unavailable/no_answer 503',
  'replay_store_unavailable/store 503',
];

it(`accepts ${PROOFS} of ${PROOFS} × ${COPIES}`, async () => {
  const ledger = new AcceptLedger(LOST_ON_THE_WAY);
  const proofs: Proof[] = [];
  const mayBeLost = new Set<string>();
  const presentCopies = async () => {
    while (proofs.length < PROOFS) {
      const proof = stage.source.mint();
      proofs.push(proof);
      const present = async (target: Target) => {
        const outcome = await target.present(proof);
        ledger.record(proof.jti, target.name, outcome);
        if (LOST_ON_THE_WAY.includes(outcome)) mayBeLost.add(proof.jti);
      };
      await Promise.all(targetsOfCopies(envoyCopiesOf(proofs.length)).map(present));
    }
  };
  await Promise.all(Array.from({ length: PROOFS_AT_ONCE }, presentCopies));
  const consumed = await identifiersIn(redis);
  const lost = proofs.filter(({ jti }) => !ledger.isAccepted(jti));
  process.stdout.write(
    `copies: ${JSON.stringify({ lost: lost.length, ...Object.fromEntries(ledger.outcomes) })}\n`,
  );
  expect(ledger.doubles).toEqual([]);
  expect(ledger.unknown).toEqual([]);
  // Each proof has exactly one record, and there are no other records.
  expect(consumed.toSorted()).toEqual(proofs.map(({ identifier }) => identifier).toSorted());
  // Each lost proof belongs to a caller that got no definite answer.
  expect(lost.filter(({ jti }) => !mayBeLost.has(jti))).toEqual([]);
  expect(ledger.acceptCount + lost.length).toBe(PROOFS);
  expect(ledger.acceptsThrough('envoy')).toBeGreaterThan(0);
  expect(upstream.requests.length).toBe(ledger.acceptsThrough('envoy'));
}, 400_000);

/** Of all records. */
async function identifiersIn(server: TestRedisServer): Promise<readonly string[]> {
  const hashes = await server.ask('KEYS', `${replayKeys('*').bucketPrefix}*`);
  if (!Array.isArray(hashes)) throw new Error('no list of keys');
  const fields = await Promise.all(hashes.map((key) => server.ask('HKEYS', String(key))));
  return fields.flat().map(String);
}

/** Some share their proof with copies that go straight to the verifiers, which nearly always come first; some do not. */
function envoyCopiesOf(proofNumber: number): number {
  if (proofNumber % ENVOY_EVERY === 0) return ENVOY_COPIES;
  return proofNumber % ENVOY_EVERY === 1 ? COPIES : 0;
}

function targetsOfCopies(envoyCopies: number): readonly Target[] {
  const grpcTargets = stage.verifiers.map(({ target }) => target);
  return Array.from({ length: COPIES }, (_, copy) => {
    const kind = copy < envoyCopies ? envoyTargets : grpcTargets;
    return kind[copy % kind.length];
  }).filter((target) => target !== undefined);
}
