/** An explanation decides as the verifier does, because it asks the verifier's own functions: of every fault, and of pairs. */
import { describe, expect, it } from '@jest/globals';
import { explainRequest, transcriptLines } from '../../../../src/verifier/decision/explain/explain.ts';
import { canMeet, requestWith, snapshotWith, TABLE_CALLERS } from '../../../support/cases/faulty-site.ts';
import { MUTATIONS } from '../../../support/cases/mutations.ts';
import { faultsOf } from '../../../support/cases/one-fault.ts';
import { NOW_SECONDS } from '../../../support/fixtures/bundle-content.ts';
import { factsOfWire, type RequestPlan, signRequest } from '../../../support/fixtures/signed-request.ts';
import {
  CONTEXT,
  compileSite,
  newSiteKeys,
  PROVENANCE,
  siteContent,
} from '../../../support/fixtures/snapshot.ts';
import { Random } from '../../../support/random.ts';
import { expectAgreement, explainNow, verdictOf } from './agreement.ts';

const keys = newSiteKeys();
const sound = await compileSite(siteContent(keys));
// Less where every test is run for each of thousands of mutants.
const TRIES = Math.min(1000, Number(process.env.PROOFGATE_TEST_MUTATIONS ?? 300));
/** Partners of each fault, spread over the later faults. */
const PARTNERS = 2;

describe.each(TABLE_CALLERS)('%s', (caller) => {
  const faults = faultsOf(caller).filter(({ step }) => step <= 5);

  it('without a fault', () => {
    const { decision } = expectAgreement(requestWith(keys, caller, []).facts, sound);
    expect(verdictOf(decision)).toBe('verified');
  });

  it.each(faults)('step $step: $outcome', async (fault) => {
    const { decision } = expectAgreement(
      requestWith(keys, caller, [fault]).facts,
      await snapshotWith(keys, [fault]),
    );
    expect(verdictOf(decision)).toBe(fault.outcome);
  });

  it.each(faults.slice(0, -1))('$outcome, with some that come after it', async (first) => {
    const later = faults.slice(faults.indexOf(first) + 1).filter((second) => canMeet(first, second));
    for (const second of later.filter((_, index) => index % Math.ceil(later.length / PARTNERS) === 0)) {
      const both = [first, second];
      const { decision } = expectAgreement(
        requestWith(keys, caller, both).facts,
        await snapshotWith(keys, both),
      );
      expect(verdictOf(decision)).toBe(first.outcome);
    }
  });
});

it('a later step says what it would say', async () => {
  const faults = faultsOf('billing').filter(({ outcome }) =>
    [
      'source_issuer_mismatch 403',
      'stale_bundle_fail_closed/stale 503',
      'missing_context/team 403',
      'invalid_request_proof/proof_signature 401',
      'request_binding_mismatch/target 403',
    ].includes(outcome),
  );
  expect(faults).toHaveLength(5);
  const { steps, transcript } = explainNow(
    requestWith(keys, 'billing', faults).facts,
    await snapshotWith(keys, faults),
  );
  expect(steps.map(({ verdict, denial }) => [verdict, denial?.reason, denial?.detail])).toEqual([
    ['passed', undefined, undefined],
    ['failed', 'source_issuer_mismatch', undefined],
    ['would_fail', 'stale_bundle_fail_closed', 'stale'],
    ['would_fail', 'missing_context', 'team'],
    ['would_fail', 'invalid_request_proof', 'proof_signature'],
    ['not_reached', undefined, undefined],
    ['not_reached', undefined, undefined],
  ]);
  expect(transcript.filter(({ isEqual }) => !isEqual).map(({ name }) => name)).toEqual(['target']);
});

it('of each attribute that is required, what the caller has', async () => {
  const faults = faultsOf('billing').filter(({ outcome }) => outcome === 'missing_context/team 403');
  const { attributes } = explainNow(
    requestWith(keys, 'billing', faults).facts,
    await snapshotWith(keys, faults),
  );
  expect(attributes.map(({ actual, denial, kind, name }) => [kind, name, actual, denial?.reason])).toEqual([
    ['provenance', 'image', PROVENANCE.image, undefined],
    ['provenance', 'zone', PROVENANCE.zone, undefined],
    ['context', 'environment', CONTEXT.environment, undefined],
    ['context', 'team', undefined, 'missing_context'],
  ]);
});

it('of the bundle, how old it is and may be', () => {
  const { facts } = requestWith(keys, 'billing', []);
  const { freshness } = explainNow(facts, sound);
  expect(freshness?.ageSeconds).toBe(NOW_SECONDS - sound.freshAsOfSeconds);
  expect(freshness?.limitSeconds).toBeGreaterThan(0);
  const { facts: toFuture } = signRequest(keys, { caller: 'billing', route: 'future' });
  // An unknown freshness class denies at any age.
  expect(explainNow(toFuture, sound).freshness).toEqual({ ...freshness, limitSeconds: undefined });
});

it('of a request that leads nowhere, nothing about rules, attributes, lines, or another moment', () => {
  const { facts } = signRequest(keys, { caller: 'billing', route: 'orders-read' });
  const { attributes, freshness, rules, transcript, whenMade } = explainNow(
    { ...facts, target: '/nowhere' },
    sound,
  );
  expect({ attributes, freshness, rules, transcript, whenMade }).toEqual({
    attributes: [],
    freshness: undefined,
    rules: [],
    transcript: [],
    whenMade: undefined,
  });
});

it('of a request whose time has passed, what would have been decided when it was made', () => {
  const late = { nowSeconds: NOW_SECONDS + 86_000, realtimeStalenessSeconds: 10 };
  const { facts } = signRequest(keys, { caller: 'billing', route: 'orders-read' });
  const { decision, whenMade } = explainRequest(facts, sound, late);
  expect(verdictOf(decision)).toBe('stale_bundle_fail_closed/stale 503');
  expect(whenMade?.nowSeconds).toBe(NOW_SECONDS);
  expect(whenMade && verdictOf(whenMade.decision)).toBe('verified');
});

it(`${TRIES} requests with one thing changed`, () => {
  const seed = Number(process.env.PROOFGATE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  const random = new Random(seed);
  const plans: readonly RequestPlan[] = [
    { caller: 'billing', route: 'everything' },
    { caller: 'broker', route: 'tenants' },
    { caller: 'reporting', route: 'orders-read' },
  ];
  const victims = plans.map((plan) => ({
    plan,
    request: signRequest(keys, plan),
    signedNames: plan.route === 'orders-read' ? [] : ['x-tenant'],
  }));
  const verdicts = new Set<string>();
  for (let run = 0; run < TRIES; run++) {
    const victim = random.pick(victims);
    const other = random.pick(victims.filter((candidate) => candidate !== victim));
    const mutation = random.pick(MUTATIONS.filter(({ applies }) => applies?.(victim) ?? true));
    const facts = factsOfWire(mutation.apply({ keys, victim, other, random }));
    try {
      verdicts.add(verdictOf(expectAgreement(facts, sound).decision));
    } catch (error) {
      throw new Error(`seed ${seed}, run ${run}, ${mutation.kind}`, { cause: error });
    }
  }
  expect(verdicts.size).toBeGreaterThan(10);
});

it('lines are those of the text that is signed', () => {
  const { facts, transcriptText } = signRequest(keys, { caller: 'broker', route: 'tenants' });
  const credentials = explainNow(facts, sound).credentials;
  const lines = credentials?.format === 'transcript-v1' ? transcriptLines(credentials.proof.transcript) : [];
  const text = ['transcript-v1', ...lines.map(([name, value]) => `${name}=${value}`), ''].join('\n');
  expect(text).toBe(transcriptText);
});

it('says which of a header the route wants and the caller did not sign is missing or repeated', () => {
  const plan: RequestPlan = { caller: 'billing', route: 'tenants' };
  const unsigned = signRequest(keys, plan, {
    transcript: (draft) => {
      draft.headers = draft.headers.filter(({ name }) => name !== 'x-tenant');
    },
    received: (request) => ({
      ...request,
      headers: [
        ...request.headers.filter(({ name }) => name !== 'accept'),
        { name: 'x-tenant', value: 'other' },
      ],
    }),
  });
  const differing = explainNow(unsigned.facts, sound).transcript.filter(({ isEqual }) => !isEqual);
  expect(differing).toEqual([
    {
      name: 'headers',
      signed: 'accept',
      rebuilt: { kind: 'value', value: 'accept,x-tenant' },
      isEqual: false,
    },
    {
      name: 'header.accept',
      signed: 'text/html;q=0.5',
      rebuilt: { kind: 'unknown', why: 'header_missing' },
      isEqual: false,
    },
    {
      name: 'header.x-tenant',
      signed: undefined,
      rebuilt: { kind: 'unknown', why: 'header_repeated' },
      isEqual: false,
    },
  ]);
});
