/** Tests the full embedded store: it denies, drops no record to make room, and serves again by itself when its records expire. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { machineSlowness, waitFor } from '../../support/wait.ts';
import { AcceptLedger } from './accept-ledger.ts';
import { type Proof, ProofSource, SKEW_SECONDS } from './proof-source.ts';
import { ReplayStage } from './replay-fixture.ts';
import type { ReplayVerifier } from './verifier-process.ts';

/** Each holder may use half of the store, each subject three quarters. */
const HOLDERS = 4;
/** The least that may be set. */
const MAX_RECORDS = 1_000;
const MORE_THAN_FIT = 200;
const SAMPLE = 10;
/** The longest, since a slow machine takes long to present them all. */
const LIFE_SECONDS = 60;
/** docs/design/protocol.md "Replay": kept until `expires-at` + 3 × skew + 2 s. */
const KEPT_SECONDS = LIFE_SECONDS + 3 * SKEW_SECONDS + 2;
const ALLOWANCE_SECONDS = 15;
const PRESENTED_AT_ONCE = 50;
const FULL = 'replay_store_unavailable/store 503';
const EXPIRED = 'invalid_request_proof/proof_expired 401';

let stage: ReplayStage;
let verifier: ReplayVerifier;
beforeAll(async () => {
  stage = await ReplayStage.set(await ProofSource.create({ singleVerifier: true, holderCount: HOLDERS }));
  const flags = ['--max-replay-records', `${MAX_RECORDS}`];
  verifier = await stage.startVerifier({ name: 'only', replay: 'memory', flags });
});
afterAll(() => stage?.strike());

it('refuses when it is full, evicts nothing, and serves again by itself', async () => {
  const ledger = new AcceptLedger([EXPIRED]);
  const present = async (proof: Proof) => {
    const outcome = await verifier.target.present(proof);
    ledger.record(proof.jti, verifier.target.name, outcome);
    return outcome;
  };
  const presentAll = async (proofs: readonly Proof[]) => {
    const outcomes: string[] = [];
    for (let at = 0; at < proofs.length; at += PRESENTED_AT_ONCE) {
      outcomes.push(...(await Promise.all(proofs.slice(at, at + PRESENTED_AT_ONCE).map(present))));
    }
    return outcomes;
  };
  const mint = (count: number) =>
    Array.from({ length: count }, () => stage.source.mint({ lifeSeconds: LIFE_SECONDS }));

  const offered = mint(MAX_RECORDS + MORE_THAN_FIT);
  const outcomes = await presentAll(offered);
  const consumed = offered.filter((_, at) => outcomes[at] === 'allowed');
  const refused = offered.filter((_, at) => outcomes[at] !== 'allowed');
  expect(consumed).toHaveLength(MAX_RECORDS);
  expect(new Set(outcomes)).toEqual(new Set(['allowed', FULL]));
  expect((await verifier.probe('/readyz')).status).toBe(503);

  // More load does not make the store forget: it still knows every consumed proof that is not expired.
  await presentAll(mint(MORE_THAN_FIT));
  const unexpired = async (proofs: readonly Proof[]) =>
    new Set((await presentAll(proofs)).filter((outcome) => outcome !== EXPIRED));
  expect(await unexpired(consumed)).toEqual(new Set(['jti_replay 403']));
  expect(await unexpired(refused)).toEqual(new Set([FULL]));

  const fullMs = performance.now();
  await waitFor('room for another proof', async () => {
    const again = new Set(await presentAll(consumed.slice(-SAMPLE)));
    for (const outcome of again) expect(['jti_replay 403', EXPIRED]).toContain(outcome);
    return (await present(stage.source.mint({ lifeSeconds: 1 }))) === 'allowed' ? true : undefined;
  });
  expect((performance.now() - fullMs) / 1000).toBeLessThan(
    KEPT_SECONDS + ALLOWANCE_SECONDS * machineSlowness(),
  );
  expect(ledger.doubles).toEqual([]);
  expect(ledger.unknown).toEqual([]);
  await waitFor('readiness', async () =>
    (await verifier.probe('/readyz')).status === 200 ? true : undefined,
  );
});
