/** Requests and what becomes of each, as a table. */
import { describe, expect, it } from '@jest/globals';
import {
  type RequestEdits,
  type RequestPlan,
  signRequest,
  type WireRequest,
} from '../fakes/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../fakes/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../fakes/test-verifier.ts';

export const keys = newSiteKeys();
const site = await compileSite(siteContent(keys));

export interface Case {
  readonly name: string;
  readonly plan: RequestPlan;
  readonly edits?: RequestEdits;
  readonly outcome: string;
}

export function describeCases(title: string, cases: readonly Case[]): void {
  describe(title, () => {
    it.each(cases)('$name: $outcome', ({ plan, edits, outcome }) => {
      const { verifier } = createTestVerifier({ snapshot: site });
      expect(outcomeOf(checkNow(verifier, signRequest(keys, plan, edits).facts))).toBe(outcome);
    });
  });
}

export const received = (change: Partial<WireRequest>): RequestEdits => ({
  received: (request) => ({ ...request, ...change }),
});
export const read: RequestPlan = { caller: 'billing', route: 'orders-read' };
export const write: RequestPlan = { caller: 'billing', route: 'orders-write' };
export const everything: RequestPlan = { caller: 'broker', route: 'everything' };
