/** The decision table of docs/design/protocol.md: every row, its precedence over every later row, and its boundaries. */
import { describe, expect, it } from '@jest/globals';
import { REASONS } from '../../../src/protocol/reasons.ts';
import { partsOf } from '../../support/cases/denial-case.ts';
import type { Fault, TableCaller } from '../../support/cases/fault.ts';
import {
  canMeet,
  requestWith,
  snapshotWith,
  storeWith,
  TABLE_CALLERS,
} from '../../support/cases/faulty-site.ts';
import { FAULTS, faultsOf } from '../../support/cases/one-fault.ts';
import { newSiteKeys } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();

interface Answer {
  readonly outcome: string;
  readonly claimsOnReplayStore: number;
}

const snapshots = new Map<string, ReturnType<typeof snapshotWith>>();

/** Compiles a bundle with the same faults once. */
function snapshotOf(faults: readonly Fault[]): ReturnType<typeof snapshotWith> {
  const changing = faults.filter(({ content, noBundle }) => content !== undefined || noBundle === true);
  const name = changing.map(({ outcome }) => outcome).join();
  const snapshot = snapshots.get(name) ?? snapshotWith(keys, changing);
  snapshots.set(name, snapshot);
  return snapshot;
}

/** The answer to a request with all of the faults. */
async function answerTo(caller: TableCaller, faults: readonly Fault[]): Promise<Answer> {
  const store = storeWith(faults);
  const snapshot = await snapshotOf(faults);
  const { internalErrors, verifier } = createTestVerifier({ snapshot, store });
  const outcome = outcomeOf(checkNow(verifier, requestWith(keys, caller, faults).facts));
  expect(internalErrors).toEqual([]);
  return { outcome, claimsOnReplayStore: store.claims.length };
}

describe('the decision table', () => {
  it('has a row for every reason but those about the verifier itself', () => {
    const reasons = new Set(FAULTS.map(({ outcome }) => partsOf(outcome).reason));
    expect([...reasons].sort()).toEqual(REASONS.filter((name) => name !== 'verifier_unavailable').sort());
    expect(new Set(FAULTS.map(({ outcome }) => outcome)).size).toBe(FAULTS.length);
    expect(FAULTS.map(({ step }) => step)).toEqual(FAULTS.map(({ step }) => step).sort());
  });

  describe.each(TABLE_CALLERS)('%s', (caller) => {
    it('is allowed without a fault', async () => {
      expect(await answerTo(caller, [])).toEqual({ outcome: 'allowed', claimsOnReplayStore: 1 });
    });

    it.each(faultsOf(caller))('step $step: $outcome', async (fault) => {
      const claimsOnReplayStore = fault.step === 6 ? 1 : 0;
      expect(await answerTo(caller, [fault])).toEqual({ outcome: fault.outcome, claimsOnReplayStore });
    });
  });
});

describe('of two faults the first in the table wins', () => {
  describe.each(TABLE_CALLERS)('%s', (caller) => {
    const faults = faultsOf(caller);
    const tooClose: string[] = [];

    it.each(faults.slice(0, -1))('$outcome', async (first) => {
      for (const second of faults.slice(faults.indexOf(first) + 1)) {
        if (!canMeet(first, second)) {
          tooClose.push(`${first.outcome} + ${second.outcome}`);
          continue;
        }
        const { outcome } = await answerTo(caller, [first, second]);
        expect({ first: first.outcome, second: second.outcome, outcome }).toEqual({
          first: first.outcome,
          second: second.outcome,
          outcome: first.outcome,
        });
      }
    });

    it('and only these could not be put together', () => {
      expect(tooClose).toEqual(
        TOO_CLOSE.map(([first, second]) => `${first} + ${second}`).filter(isOf(faults)),
      );
    });
  });
});

function isOf(faults: readonly Fault[]) {
  const outcomes = new Set<string>(faults.map(({ outcome }) => outcome));
  return (pair: string) => pair.split(' + ').every((outcome) => outcomes.has(outcome));
}

/** They change the same thing. */
const TOO_CLOSE = [
  ['invalid_request_proof/authorization_missing 401', 'invalid_request_proof/passport_repeated 401'],
  ['invalid_request_proof/authorization_scheme 401', 'invalid_request_proof/passport_repeated 401'],
  ['source_subject_mismatch/not_granted 403', 'invalid_request_proof/key_unknown 401'],
  ['stale_bundle_fail_closed/clock 503', 'stale_bundle_fail_closed/expired 503'],
  ['stale_bundle_fail_closed/clock 503', 'stale_bundle_fail_closed/stale 503'],
  ['invalid_request_proof/key_unknown 401', 'invalid_request_proof/claims_not_allowed 401'],
  ['invalid_request_proof/key_not_yet_valid 401', 'invalid_request_proof/key_expired 401'],
  ['invalid_request_proof/proof_not_yet_valid 401', 'invalid_request_proof/proof_expired 401'],
  ['request_binding_mismatch/content-sha256 403', 'request_binding_mismatch/body_unavailable 403'],
  ['jti_replay 403', 'replay_store_unavailable/store 503'],
  ['jti_replay 403', 'replay_store_unavailable/fenced 503'],
  ['jti_replay 403', 'replay_store_unavailable/quota 503'],
  ['replay_store_unavailable/store 503', 'replay_store_unavailable/fenced 503'],
  ['replay_store_unavailable/store 503', 'replay_store_unavailable/quota 503'],
  ['replay_store_unavailable/fenced 503', 'replay_store_unavailable/quota 503'],
] as const;
