/** Step 5 check by check: for each fault which check fails, what the checks before it say, and what those after it say. */
import { describe, expect, it } from '@jest/globals';
import { newEvaluation } from '../../../../src/verifier/decision/facts/evaluation.ts';
import { createPassportCache } from '../../../../src/verifier/decision/facts/passport-cache.ts';
import { type CheckName, STEPS } from '../../../../src/verifier/decision/steps.ts';
import type { Fault, TableCaller } from '../../../support/cases/fault.ts';
import { requestWith, snapshotWith } from '../../../support/cases/faulty-site.ts';
import { faultsOf } from '../../../support/cases/one-fault.ts';
import { signRequest } from '../../../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../../../support/fixtures/snapshot.ts';
import { explainNow } from './agreement.ts';

const keys = newSiteKeys();
const NAMES: readonly CheckName[] = [
  'key',
  'passport_signature',
  'claims',
  'blocked',
  'passport_times',
  'audience',
  'proof_signature',
  'proof_times',
];
const CHECK_OF_DETAIL: { readonly [detail: string]: CheckName } = {
  key_unknown: 'key',
  key_revoked: 'key',
  key_not_yet_valid: 'key',
  key_expired: 'key',
  passport_signature: 'passport_signature',
  claims_not_allowed: 'claims',
  subject_blocked: 'blocked',
  holder_blocked: 'blocked',
  passport_ttl: 'passport_times',
  passport_not_yet_valid: 'passport_times',
  passport_expired: 'passport_times',
  audience: 'audience',
  proof_signature: 'proof_signature',
  proof_ttl: 'proof_times',
  proof_not_yet_valid: 'proof_times',
  proof_expired: 'proof_times',
};

const detailOf = ({ outcome }: Fault) => outcome.split(/[/ ]/)[1] ?? '';

function faultOf(caller: TableCaller, step: number, detail: string): Fault {
  const fault = faultsOf(caller).find((one) => one.step === step && detailOf(one) === detail);
  if (fault === undefined) throw new Error(`no fault ${detail}`);
  return fault;
}

type Line = readonly [check: string, verdict: string, detail: string | undefined];

/** The checks of step 5 before the binding, and the binding. */
async function explainChecks(caller: TableCaller, faults: readonly Fault[]) {
  const snapshot = await snapshotWith(keys, faults);
  const { facts } = requestWith(keys, caller, faults);
  const lines = explainNow(facts, snapshot)
    .steps.flatMap(({ step, checks }) => (step === 5 ? checks : []))
    .map(({ check, verdict, denial }): Line => [check, verdict, denial?.detail]);
  return { proof: lines.slice(0, -1), binding: lines.at(-1) };
}

const all = (verdict: string): Line[] => NAMES.map((name) => [name, verdict, undefined]);
const stale = faultOf('broker', 3, 'stale');

it('all pass', async () => {
  expect(await explainChecks('broker', [])).toEqual({
    proof: all('passed'),
    binding: ['binding', 'passed', undefined],
  });
});

it('all pass, and the binding does not', async () => {
  expect(await explainChecks('broker', [faultOf('broker', 5, 'target')])).toEqual({
    proof: all('passed'),
    binding: ['binding', 'failed', 'target'],
  });
});

it('all would pass after a denial in an earlier step', async () => {
  const { proof, binding } = await explainChecks('broker', [stale]);
  expect(proof).toEqual(all('would_pass'));
  expect(binding).toEqual(['binding', 'would_pass', undefined]);
});

it('none is reached when the credentials cannot be read', async () => {
  const { proof, binding } = await explainChecks('broker', [faultOf('broker', 1, 'passport_malformed')]);
  expect(proof).toEqual(all('not_reached'));
  expect(binding).toEqual(['binding', 'not_reached', undefined]);
});

describe.each<TableCaller>(['billing', 'broker'])('%s', (caller) => {
  const faults = faultsOf(caller).filter(
    ({ outcome, step }) => step === 5 && outcome.startsWith('invalid_request_proof/'),
  );

  describe.each(faults)('$outcome', (fault) => {
    const check = CHECK_OF_DETAIL[detailOf(fault)] ?? 'key';
    const at = NAMES.indexOf(check);
    const expected = (before: string, here: string): Line[] => [
      ...NAMES.slice(0, at).map((name): Line => [name, before, undefined]),
      [check, here, detailOf(fault)],
      ...NAMES.slice(at + 1).map((name): Line => [name, 'not_reached', undefined]),
    ];

    it('alone', async () => {
      expect((await explainChecks(caller, [fault])).proof).toEqual(expected('passed', 'failed'));
    });

    it('after a denial in an earlier step', async () => {
      const { proof } = await explainChecks(caller, [stale, fault]);
      expect(proof).toEqual(expected('would_pass', 'would_fail'));
    });
  });
});

it('has a fault for every detail', () => {
  const details = (['billing', 'broker'] as const).flatMap((caller) =>
    faultsOf(caller)
      .filter(({ outcome, step }) => step === 5 && outcome.startsWith('invalid_request_proof/'))
      .map(detailOf),
  );
  expect([...new Set(details)].sort()).toEqual(Object.keys(CHECK_OF_DETAIL).sort());
});

describe('STEPS', () => {
  const checks = STEPS.flatMap((step) => step.checks);

  it('are numbered in order, and name each check once', () => {
    expect(STEPS.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(checks.map(({ name }) => name)).size).toBe(checks.length);
  });

  it('list each check after those that it needs', () => {
    for (const [index, { needs }] of checks.entries()) {
      const before = checks.slice(0, index).map(({ name }) => name);
      expect(before).toEqual(expect.arrayContaining([...needs]));
    }
  });

  it('throw where a check runs without those that it needs', () => {
    const { facts } = signRequest(keys, { caller: 'broker', route: 'everything' });
    const inputs = { nowSeconds: 1, realtimeStalenessSeconds: 1, passports: createPassportCache() };
    for (const { needs, run } of checks) {
      if (needs.length > 0) expect(() => run(newEvaluation(facts, undefined, inputs, {}))).toThrow(TypeError);
    }
  });
});
