/** Request sequences in which the first request affects the decision about the next. */
import { NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { signVectorRequest } from '../../support/fixtures/deterministic.ts';
import { withOtherS } from '../../support/fixtures/signature-spellings.ts';
import { type RequestEdits, type RequestPlan, withHeader } from '../../support/fixtures/signed-request.ts';
import { SKEW_SECONDS } from '../../support/fixtures/snapshot.ts';
import { OTHER_TEST_KEYS } from '../../support/fixtures/test-keys.ts';
import type { ReplayVector } from './format.ts';
import { BASE_BUNDLE, expectedAllowance, expectedDenial, receivedRequest } from './request-vectors.ts';

interface Step {
  readonly plan: RequestPlan;
  readonly edits?: RequestEdits;
  /** Seconds after the corpus's moment. */
  readonly after?: number;
  /** Makes the identifiers; the same within a sequence where the same proof comes again. */
  readonly proof: string;
  readonly outcome: string;
}

interface Sequence {
  readonly name: string;
  readonly store?: NonNullable<ReplayVector['store']>;
  readonly steps: readonly Step[];
}

const orders: RequestPlan = { caller: 'billing', route: 'orders-read' };
const forBroker: RequestPlan = { caller: 'broker', route: 'orders-read', holder: OTHER_TEST_KEYS.holder };
const REPLAY = 'jti_replay 403';

const signedAs = (jti: string): RequestEdits => ({
  transcript: (draft) => void Object.assign(draft, { jti }),
});
const SAME_JTI = signedAs('c2FtZS1qdGktb2YtdHdvLXByb29mcw');
const lateProof: RequestEdits = {
  transcript: (draft) => {
    draft.issuedAtSeconds = NOW_SECONDS + 60;
    draft.expiresAtSeconds = NOW_SECONDS + 120;
  },
};

const signedWithOtherS: RequestEdits = {
  received: (request) => withHeader(request, 'x-proofgate-signature', withOtherS),
};

const roomy = { started_at: NOW_SECONDS - 3600, max_records: 1000, holder_quota_per_minute: 600_000 };

const SEQUENCES: readonly Sequence[] = [
  {
    name: 'the same proof twice',
    steps: [
      { plan: orders, proof: 'a', outcome: 'allowed' },
      { plan: orders, proof: 'a', outcome: REPLAY },
      { plan: orders, proof: 'a', outcome: REPLAY },
    ],
  },
  {
    name: 'the same proof in the last second in which it is good, and one later',
    steps: [
      { plan: orders, proof: 'a', outcome: 'allowed' },
      { plan: orders, proof: 'a', after: 60 + SKEW_SECONDS - 1, outcome: REPLAY },
      {
        plan: orders,
        proof: 'a',
        after: 60 + SKEW_SECONDS,
        outcome: 'invalid_request_proof/proof_expired 401',
      },
    ],
  },
  {
    name: 'two proofs with one passport',
    steps: [
      { plan: orders, proof: 'a', outcome: 'allowed' },
      { plan: orders, proof: 'b', outcome: 'allowed' },
    ],
  },
  {
    name: 'two proofs with one jti, of one holder, for different routes',
    steps: [
      { plan: orders, proof: 'a', edits: SAME_JTI, outcome: 'allowed' },
      { plan: { caller: 'billing', route: 'prices' }, proof: 'b', edits: SAME_JTI, outcome: REPLAY },
    ],
  },
  {
    name: 'two proofs with one jti, of two holders',
    steps: [
      { plan: orders, proof: 'a', edits: SAME_JTI, outcome: 'allowed' },
      { plan: forBroker, proof: 'b', edits: SAME_JTI, outcome: 'allowed' },
      { plan: forBroker, proof: 'b', edits: SAME_JTI, outcome: REPLAY },
    ],
  },
  {
    name: 'a jti in other capitals is another',
    steps: [
      { plan: orders, proof: 'a', edits: signedAs('a'.repeat(22)), outcome: 'allowed' },
      { plan: orders, proof: 'b', edits: signedAs(`A${'a'.repeat(21)}`), outcome: 'allowed' },
    ],
  },
  {
    name: 'a request that is denied consumes nothing',
    steps: [
      {
        plan: orders,
        proof: 'a',
        edits: { received: (request) => ({ ...request, target: '/v1/orders/18' }) },
        outcome: 'request_binding_mismatch/target 403',
      },
      {
        plan: orders,
        proof: 'a',
        edits: { received: (request) => withHeader(request, 'x-proofgate-signature', () => 'A'.repeat(86)) },
        outcome: 'invalid_request_proof/proof_signature 401',
      },
      { plan: orders, proof: 'a', outcome: 'allowed' },
      { plan: orders, proof: 'a', outcome: REPLAY },
    ],
  },
  {
    name: 'a stolen proof under another method, path and body is denied before it is looked for',
    steps: [
      { plan: orders, proof: 'a', outcome: 'allowed' },
      {
        plan: orders,
        proof: 'a',
        edits: { received: (request) => ({ ...request, method: 'DELETE' }) },
        outcome: 'request_binding_mismatch/route-id 403',
      },
    ],
  },
  {
    name: 'a P-256 holder whose proof is signed again with the other s',
    steps: [
      { plan: { caller: 'reporting', route: 'orders-read' }, proof: 'a', outcome: 'allowed' },
      {
        plan: { caller: 'reporting', route: 'orders-read' },
        proof: 'a',
        edits: signedWithOtherS,
        outcome: REPLAY,
      },
    ],
  },
  {
    name: 'a store that has just begun refuses what it may have forgotten',
    store: { ...roomy, started_at: NOW_SECONDS - SKEW_SECONDS },
    steps: [
      { plan: orders, proof: 'a', outcome: 'replay_store_unavailable/fenced 503' },
      { plan: orders, proof: 'b', edits: lateProof, after: 60, outcome: 'allowed' },
    ],
  },
  {
    name: 'a full store refuses, and forgets nothing',
    store: { ...roomy, max_records: 1 },
    steps: [
      { plan: orders, proof: 'a', outcome: 'allowed' },
      { plan: orders, proof: 'b', outcome: 'replay_store_unavailable/store 503' },
      { plan: orders, proof: 'a', outcome: REPLAY },
    ],
  },
  {
    name: "a holder's quota of a minute is its own",
    store: { ...roomy, holder_quota_per_minute: 2 },
    steps: [
      { plan: orders, proof: 'a', outcome: 'allowed' },
      { plan: orders, proof: 'b', outcome: 'allowed' },
      { plan: orders, proof: 'c', outcome: 'replay_store_unavailable/quota 503' },
      { plan: forBroker, proof: 'd', outcome: 'allowed' },
    ],
  },
];

export function replayVectors(): readonly ReplayVector[] {
  return SEQUENCES.map(({ name, steps, store }) => ({
    name,
    bundle: BASE_BUNDLE,
    realtime_staleness_seconds: 600,
    store: store ?? null,
    steps: steps.map(({ after = 0, edits, outcome, plan, proof }) => ({
      now: NOW_SECONDS + after,
      request: receivedRequest(signVectorRequest(`${name}: ${proof}`, plan, edits)),
      expected:
        outcome === 'allowed'
          ? expectedAllowance(plan.caller, plan.route, {
              keyBinding: plan.caller === 'broker' ? 'attested_workload' : 'software',
            })
          : expectedDenial(outcome),
    })),
  }));
}
