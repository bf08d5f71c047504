/** What a rule's subject matches, and what a passport may claim: each to the last character. */
import { describe, expect, it } from '@jest/globals';
import { readCredentials } from '../../../src/protocol/credentials.ts';
import { isDenial } from '../../../src/protocol/reasons.ts';
import { passportClaimsAllowed } from '../../../src/verifier/decision/steps/proof.ts';
import { type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  newSiteKeys,
  type SiteContent,
  siteContent,
  sourcesOf,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const BILLING: RequestPlan = { caller: 'billing', route: 'orders-read' };
const BROKER: RequestPlan = { caller: 'broker', route: 'orders-read' };
const MISMATCH = 'source_subject_mismatch 403';

async function outcomeWith(plan: RequestPlan, change: (content: SiteContent) => void): Promise<string> {
  const content = siteContent(keys);
  change(content);
  const { verifier } = createTestVerifier({ snapshot: await compileSite(content) });
  return outcomeOf(checkNow(verifier, signRequest(keys, plan).facts));
}

type Subject = { readonly subject_exact: string } | { readonly subject_prefix: string };

/** The one rule of the route, for the caller's issuer, with another subject. */
const withSubject = (plan: RequestPlan, subject: Subject) =>
  outcomeWith(plan, (content) => {
    const rules = sourcesOf(content, 'orders-read');
    const rule = rules.find((one) => 'subject_exact' in one === (plan === BILLING));
    if (rule === undefined) throw new Error('no rule to go by');
    const { subject_exact: _exact, subject_prefix: _prefix, ...others } = rule;
    rules.splice(0, rules.length, { ...others, ...subject });
  });

describe("a rule's subject", () => {
  it('that is exact matches itself alone, and nothing that only begins with it', async () => {
    expect(await withSubject(BILLING, { subject_exact: 'client:billing' })).toBe('allowed');
    for (const subject_exact of ['client:billin', 'client:billing2', 'client:', 'Client:billing']) {
      expect(await withSubject(BILLING, { subject_exact })).toBe(MISMATCH);
    }
  });

  it('that is a prefix matches what begins with it', async () => {
    const whole = 'spiffe://shop.example/ns/prod/';
    expect(await withSubject(BROKER, { subject_prefix: whole })).toBe('allowed');
    expect(await withSubject(BROKER, { subject_prefix: 'spiffe://shop.example/ns/prod-2/' })).toBe(MISMATCH);
    expect(await withSubject(BROKER, { subject_prefix: 'spiffe://shop.example/prod/' })).toBe(MISMATCH);
  });
});

describe('what a passport may claim', () => {
  it('lies under any one of the prefixes that its issuer may speak for', async () => {
    const outcome = (...prefixes: string[]) =>
      outcomeWith(BROKER, ({ issuers }) => {
        const [broker] = issuers ?? [];
        if (broker !== undefined) broker.subject_prefixes = prefixes;
      });
    const [good, other] = ['spiffe://shop.example/ns/prod/', 'spiffe://shop.example/ns/dev/'];
    expect(await outcome(other, good)).toBe('allowed');
    expect(await outcome(good, other)).toBe('allowed');
    expect(await outcome(other)).toBe('invalid_request_proof/claims_not_allowed 401');
  });

  it('is, of a derived key, held by that key and no other', async () => {
    const snapshot = await compileSite(siteContent(keys));
    const key = snapshot.keys.get('dk_billing');
    const credentials = readCredentials(
      signRequest(keys, BILLING).facts.headers,
      'authorization',
      () => undefined,
    );
    if (key === undefined || isDenial(credentials)) throw new Error('nothing to ask about');
    expect(passportClaimsAllowed(credentials.passport, key, key.key)).toBe(true);
    expect(passportClaimsAllowed(credentials.passport, key, keys.reporting.publicKey)).toBe(false);
  });
});
