/** Further ways to the rows of the decision table about callers, keys and binding, and odd requests that are allowed. */
import { describe, expect, it } from '@jest/globals';
import { BINDING_CASES } from '../../support/cases/binding-cases.ts';
import { CALLER_CASES } from '../../support/cases/caller-cases.ts';
import { claims, keys } from '../../support/cases/request-cases.ts';
import { WIRE_CASES } from '../../support/cases/wire-cases.ts';
import { BROKER_ISSUER } from '../../support/fixtures/bundle-content.ts';
import { type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import { AUTOMATION_ISSUER, compileSite, siteContent, sourcesOf } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { describeCases } from './cases.ts';

for (const group of [...CALLER_CASES, ...BINDING_CASES, ...WIRE_CASES]) describeCases(group);

describe('what holds a broker back when nothing else does', () => {
  /** The automation broker may attest anything of any subject: only its name and its trust domain are left. */
  const lenient = siteContent(keys);
  for (const issuer of lenient.issuers ?? []) {
    issuer.subject_prefixes = [''];
    issuer.key_binding = 'attested_workload';
  }
  sourcesOf(lenient, 'orders-read').push({
    issuer: AUTOMATION_ISSUER,
    trust_domain: 'other.example',
    subject_prefix: 'ci:',
    required_key_binding: 'software',
  });
  const site = compileSite(lenient);
  const plan: RequestPlan = { caller: 'automation', route: 'orders-read' };

  it.each<[string, { [name: string]: unknown }, string]>([
    ['nothing', {}, 'allowed'],
    [
      'its subject, which the route does not know',
      { sub: 'spiffe://shop.example/ns/prod/sa/x' },
      'source_subject_mismatch 403',
    ],
    [
      'its name',
      { iss: BROKER_ISSUER, sub: 'spiffe://shop.example/ns/prod/sa/x', key_binding: 'attested_workload' },
      'invalid_request_proof/claims_not_allowed 401',
    ],
    ['its trust domain', { trust_domain: 'other.example' }, 'invalid_request_proof/claims_not_allowed 401'],
  ])('%s', async (_, change, expected) => {
    const { verifier } = createTestVerifier({ snapshot: await site });
    expect(outcomeOf(checkNow(verifier, signRequest(keys, plan, claims(change)).facts))).toBe(expected);
  });
});
