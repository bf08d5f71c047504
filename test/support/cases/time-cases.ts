/** Times and ages: the last valid second, and the first invalid one. */
import { NOW_SECONDS } from '../fixtures/bundle-content.ts';
import type { ClaimsDraft, RequestEdits, RequestPlan } from '../fixtures/signed-request.ts';
import { BUNDLE_AGE_SECONDS, MAX_STALENESS_SECONDS, SKEW_SECONDS } from '../fixtures/snapshot.ts';
import { BILLING, BROKER, type BundleVariant, type VectorCase } from './vector-case.ts';

const WIDE: BundleVariant = {
  name: 'site, with a skew of 60 s',
  change: (content) => {
    content.skew_seconds = 60;
  },
};

const proof = (issuedAtSeconds: number, expiresAtSeconds: number): RequestEdits => ({
  transcript: (draft) => void Object.assign(draft, { issuedAtSeconds, expiresAtSeconds }),
});
const passport = (times: { iat?: number; exp?: number; nbf?: number }): RequestEdits => ({
  claims: (draft) => void Object.assign(draft, times),
});

interface Boundary {
  readonly what: string;
  readonly plan?: RequestPlan;
  readonly edits: RequestEdits;
  readonly bundle?: BundleVariant;
  /** The last (or first) second of the verifier's clock that is good, from the corpus's moment. */
  readonly good: number;
  readonly bad: number;
  readonly outcome: string;
}

const NOW = NOW_SECONDS;
const old = passport({ iat: NOW - 200, exp: NOW + 100 });

const BOUNDARIES: readonly Boundary[] = [
  {
    what: 'the end of a proof',
    edits: {},
    good: 60 + SKEW_SECONDS - 1,
    bad: 60 + SKEW_SECONDS,
    outcome: 'invalid_request_proof/proof_expired 401',
  },
  {
    what: 'the beginning of a proof',
    edits: { ...old, ...proof(NOW, NOW + 60) },
    good: -SKEW_SECONDS,
    bad: -SKEW_SECONDS - 1,
    outcome: 'invalid_request_proof/proof_not_yet_valid 401',
  },
  {
    what: 'the end of a proof with a skew of 60 s',
    bundle: WIDE,
    edits: {},
    good: 119,
    bad: 120,
    outcome: 'invalid_request_proof/proof_expired 401',
  },
  {
    what: 'the end of a passport',
    edits: { ...passport({ exp: NOW + 60 }), ...proof(NOW + 60, NOW + 120) },
    good: 64,
    bad: 65,
    outcome: 'invalid_request_proof/passport_expired 401',
  },
  {
    what: 'the iat of a passport',
    edits: proof(NOW - 30, NOW + 30),
    good: -5,
    bad: -6,
    outcome: 'invalid_request_proof/passport_not_yet_valid 401',
  },
  {
    what: 'the nbf of a passport',
    edits: { ...passport({ iat: NOW - 100, exp: NOW + 200, nbf: NOW + 10 }), ...proof(NOW, NOW + 60) },
    good: 5,
    bad: 4,
    outcome: 'invalid_request_proof/passport_not_yet_valid 401',
  },
];

const AT_BOUNDARIES: readonly VectorCase[] = BOUNDARIES.flatMap(
  ({ what, plan = BILLING, edits, bundle, good, bad, outcome }) => {
    const shared = { plan, edits, ...(bundle === undefined ? {} : { bundle }) };
    return [
      {
        ...shared,
        name: `times: ${what}, the last second that is good`,
        clockSeconds: NOW + good,
        outcome: 'allowed',
      },
      { ...shared, name: `times: ${what}, one second beyond`, clockSeconds: NOW + bad, outcome },
    ];
  },
);

const TTL = 'invalid_request_proof/passport_ttl 401';
const PROOF_TTL = 'invalid_request_proof/proof_ttl 401';

const LIVES: readonly VectorCase[] = [
  {
    name: "a derived key's passport of 301 s",
    plan: BILLING,
    edits: passport({ exp: NOW + 301 }),
    outcome: TTL,
  },
  { name: 'a passport of 0 s', plan: BILLING, edits: passport({ exp: NOW }), outcome: TTL },
  {
    name: 'a passport that ends before it begins',
    plan: BILLING,
    edits: {
      claims: (draft: ClaimsDraft) => {
        draft.exp = draft.iat - 1;
      },
    },
    outcome: TTL,
    onWire: { what: 'the end before the start' },
  },
  { name: 'a passport of 1 s', plan: BILLING, edits: passport({ exp: NOW + 1 }), outcome: 'allowed' },
  {
    name: "a broker's passport of 600 s, as its entry allows",
    plan: BROKER,
    edits: passport({ exp: NOW + 600 }),
    outcome: 'allowed',
  },
  {
    name: 'an issuer without a limit of its own, 300 s',
    plan: { ...BROKER, caller: 'automation' } as const,
    edits: {},
    outcome: 'allowed',
  },
  {
    name: 'an issuer without a limit of its own, 301 s',
    plan: { ...BROKER, caller: 'automation' } as const,
    edits: passport({ exp: NOW + 301 }),
    outcome: TTL,
  },
  { name: 'a proof of 300 s', plan: BILLING, edits: proof(NOW, NOW + 300), outcome: 'allowed' },
  { name: 'a proof of 1 s', plan: BILLING, edits: proof(NOW, NOW + 1), outcome: 'allowed' },
  { name: 'a proof of 301 s', plan: BILLING, edits: proof(NOW, NOW + 301), outcome: PROOF_TTL },
  { name: 'a proof of 0 s', plan: BILLING, edits: proof(NOW, NOW), outcome: PROOF_TTL },
  {
    name: 'a proof that ends before it begins',
    plan: BILLING,
    edits: proof(NOW, NOW - 1),
    outcome: PROOF_TTL,
  },
].map((vector) => ({ ...vector, name: `times: ${vector.name}` }));

const STALE = 'stale_bundle_fail_closed/stale 503';

/** A request signed and decided when the bundle has that age. */
function atAge(
  route: RequestPlan['route'],
  ageSeconds: number,
  outcome: string,
  realtimeStalenessSeconds = 10,
): VectorCase {
  const nowSeconds = NOW - BUNDLE_AGE_SECONDS + ageSeconds;
  return {
    name: `freshness: ${route} at ${ageSeconds} s, where realtime is ${realtimeStalenessSeconds} s`,
    plan: { caller: 'billing', route, nowSeconds },
    clockSeconds: nowSeconds,
    realtimeStalenessSeconds,
    outcome,
  };
}

const AGES: readonly VectorCase[] = [
  atAge('orders-read', MAX_STALENESS_SECONDS, 'allowed'),
  atAge('orders-read', MAX_STALENESS_SECONDS + 1, STALE),
  atAge('orders-read', MAX_STALENESS_SECONDS, 'allowed', 1),
  atAge('prices', 10, 'allowed'),
  atAge('prices', 11, STALE),
  atAge('prices', 3, 'allowed', 3),
  atAge('prices', 4, STALE, 3),
  atAge('prices-capped', 4, 'allowed'),
  atAge('prices-capped', 5, STALE),
  atAge('prices-capped', 4, STALE, 3),
  atAge('future', 0, 'bundle_freshness_unknown 503'),
  atAge('orders-read', -5, 'allowed'),
  atAge('orders-read', -6, 'stale_bundle_fail_closed/clock 503'),
];

export const TIME_CASES: readonly VectorCase[] = [...AT_BOUNDARIES, ...LIVES, ...AGES];
