/** The parts of step 5 by name: what is said of each, wherever the decision fell. */
import { describe, expect, it } from '@jest/globals';
import { deny } from '../../../src/protocol/reasons.ts';
import { explainProofChecks, type ProofCheckName } from '../../../src/verifier/explain/proof-checks.ts';
import type { Finding, Stage } from '../../../src/verifier/explain/walk.ts';
import { TEST_1 } from '../../protocol/fixtures.ts';

const PASSED = { kind: 'passed', value: TEST_1.publicKey } as const;
const NAMES = [
  'key',
  'passport_signature',
  'claims',
  'passport_times',
  'audience',
  'proof_signature',
  'proof_times',
] as const;

type Part = readonly [check: ProofCheckName, verdict: string, detail: string | undefined];

function partsOf(finding: Parameters<typeof explainProofChecks>[0], decidedAt: Stage | undefined): Part[] {
  return explainProofChecks(finding, decidedAt).map(({ check, verdict, detail }) => [check, verdict, detail]);
}

const all = (verdict: string): Part[] => NAMES.map((name) => [name, verdict, undefined]);

it.each([
  [undefined, 'passed'],
  ['binding', 'passed'],
  ['source', 'would_pass'],
  ['attributes', 'would_pass'],
] as const)('a proof that passed, decided at %s: %s', (decidedAt, verdict) => {
  expect(partsOf(PASSED, decidedAt)).toEqual(all(verdict));
});

it('a proof that could not be asked about', () => {
  expect(partsOf({ kind: 'skipped' }, 'credentials')).toEqual(all('not_reached'));
});

describe.each([
  ['key_unknown', 'key'],
  ['key_revoked', 'key'],
  ['key_not_yet_valid', 'key'],
  ['key_expired', 'key'],
  ['passport_signature', 'passport_signature'],
  ['claims_not_allowed', 'claims'],
  ['passport_ttl', 'passport_times'],
  ['passport_not_yet_valid', 'passport_times'],
  ['passport_expired', 'passport_times'],
  ['audience', 'audience'],
  ['proof_signature', 'proof_signature'],
  ['proof_ttl', 'proof_times'],
  ['proof_not_yet_valid', 'proof_times'],
  ['proof_expired', 'proof_times'],
] as const)('%s is a fault of the %s:', (detail, check) => {
  const at = NAMES.indexOf(check);
  const finding: Finding<never> = { kind: 'failed', denial: deny('invalid_request_proof', detail) };

  it.each([
    ['proof', 'passed', 'failed'],
    ['freshness', 'would_pass', 'would_fail'],
  ] as const)('decided at %s', (decidedAt, before, here) => {
    expect(partsOf(finding, decidedAt)).toEqual([
      ...NAMES.slice(0, at).map((name) => [name, before, undefined]),
      [check, here, detail],
      ...NAMES.slice(at + 1).map((name) => [name, 'not_reached', undefined]),
    ]);
  });
});
