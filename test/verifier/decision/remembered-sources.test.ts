/** Routes with many rules remember who matched: never longer than route, client and claims are what they were. */
import { describe, expect, it } from '@jest/globals';
import { LiveKeyTable } from '../../../src/bundle/compile/key-table.ts';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { CONSUMED } from '../../../src/verifier/replay/store.ts';
import { claims } from '../../support/cases/request-cases.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { type RequestEdits, type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  newSiteKeys,
  type SiteContent,
  siteContent,
  sourcesOf,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();

/** The site, with rules in front of the real ones that match no caller. */
function contentWithManyRules(): SiteContent {
  const content = siteContent(keys);
  const rules = sourcesOf(content, 'orders-read');
  const [first] = rules;
  if (first === undefined) throw new Error('no rule to go by');
  const { subject_prefix: _, ...exact } = first;
  const unmatched = Array.from({ length: 30 }, (_, i) => ({
    ...exact,
    subject_exact: `client:unmatched-${i}`,
  }));
  rules.unshift(...unmatched);
  return content;
}

async function siteWith(change: (content: SiteContent) => void): Promise<Snapshot> {
  const content = contentWithManyRules();
  change(content);
  return compileSite(content);
}

const BILLING: RequestPlan = { caller: 'billing', route: 'orders-read' };
const BROKER: RequestPlan = { caller: 'broker', route: 'orders-read' };

function verifierOf(first: Snapshot) {
  let snapshot = first;
  const store = scriptedReplayStore(() => CONSUMED);
  const { verifier } = createTestVerifier({ currentSnapshot: () => snapshot, store });
  const requests = new Map([BILLING, BROKER].map((plan) => [plan, signRequest(keys, plan).facts] as const));
  return {
    outcome: (plan: RequestPlan) => {
      const facts = requests.get(plan);
      if (facts === undefined) throw new Error('no such request');
      return outcomeOf(checkNow(verifier, facts));
    },
    swap: (next: Snapshot) => {
      snapshot = next;
    },
  };
}

describe('a route with many rules', () => {
  it('admits those that a rule fits, however often they ask', async () => {
    const { outcome } = verifierOf(await siteWith(() => undefined));
    for (let time = 0; time < 3; time += 1) {
      expect([outcome(BILLING), outcome(BROKER)]).toEqual(['allowed', 'allowed']);
    }
  });

  it('refuses whom the next bundle has no rule for, and admits again whom it has', async () => {
    const withRules = await siteWith(() => undefined);
    const withoutRules = await siteWith((content) => {
      const rules = sourcesOf(content, 'orders-read');
      rules.splice(30, rules.length);
    });
    const { outcome, swap } = verifierOf(withRules);
    expect(outcome(BILLING)).toBe('allowed');
    swap(withoutRules);
    expect(outcome(BILLING)).toBe('source_subject_mismatch 403');
    expect(outcome(BROKER)).toBe('source_issuer_mismatch 403');
    swap(withRules);
    expect([outcome(BILLING), outcome(BROKER)]).toEqual(['allowed', 'allowed']);
  });

  it('refuses a client whose grants a delta took away', async () => {
    const snapshot = await siteWith(() => undefined);
    const { outcome } = verifierOf(snapshot);
    expect(outcome(BILLING)).toBe('allowed');
    const key = snapshot.keys.get('dk_billing');
    if (key?.kind !== 'derived_key') throw new Error('no such key');
    const table = snapshot.keys;
    if (!(table instanceof LiveKeyTable)) throw new Error('a table that deltas do not change');
    const { client } = key;
    table.putClient({ ...client, grants: new Map() });
    expect(outcome(BILLING)).toBe('source_subject_mismatch/not_granted 403');
    table.putClient(client);
    expect(outcome(BILLING)).toBe('allowed');
  });

  it.each<[string, { readonly [claim: string]: string }, string]>([
    ['issuer', { iss: 'https://other.example' }, 'source_subject_mismatch 403'],
    ['trust domain', { trust_domain: 'other.example' }, 'source_subject_mismatch 403'],
    ['subject', { sub: 'client:other' }, 'source_subject_mismatch 403'],
    ['key binding', { key_binding: 'attested_workload' }, 'insufficient_key_binding 403'],
  ])('remembers nothing for a client of a passport by its key with another %s', async (_, lie, ofTruth) => {
    const snapshot = await siteWith((content) => {
      const rules = sourcesOf(content, 'orders-read');
      const [first] = rules.splice(30, rules.length);
      if (first === undefined) throw new Error('no rule to go by');
      // Fits the lie alone.
      rules.push({
        issuer: lie.iss ?? first.issuer,
        trust_domain: lie.trust_domain ?? first.trust_domain,
        subject_exact: lie.sub ?? 'client:billing',
        required_key_binding: lie.key_binding === undefined ? 'software' : 'attested_workload',
      });
    });
    const { verifier } = createTestVerifier({ snapshot, store: scriptedReplayStore(() => CONSUMED) });
    const outcome = (edits: RequestEdits) =>
      outcomeOf(checkNow(verifier, signRequest(keys, BILLING, edits).facts));
    expect(outcome(claims(lie))).toBe('invalid_request_proof/claims_not_allowed 401');
    expect(outcome({})).toBe(ofTruth);
  });
});
