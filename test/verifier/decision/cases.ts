/** Requests and what becomes of each, as a table. */
import { describe, expect, it } from '@jest/globals';
import { type CaseGroup, keys } from '../../support/cases/request-cases.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { expectAgreement, verdictOf } from './explain/agreement.ts';

const site = await compileSite(siteContent(keys));

export function describeCases({ cases, title }: CaseGroup): void {
  describe(title, () => {
    it.each(cases)('$name: $outcome', ({ plan, edits, outcome }) => {
      const { verifier } = createTestVerifier({ snapshot: site });
      const { facts } = signRequest(keys, plan, edits);
      expect(outcomeOf(checkNow(verifier, facts))).toBe(outcome);
      expect(verdictOf(expectAgreement(facts, site).decision)).toBe(
        outcome === 'allowed' ? 'verified' : outcome,
      );
    });
  });
}
