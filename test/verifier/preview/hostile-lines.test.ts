/** Lines that no verifier wrote for this site: each is counted by its code, and none reaches the report. */
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { boundedLines } from '../../../src/cli/audit/audit-lines.ts';
import { MAX_CALLERS, Preview } from '../../../src/verifier/preview/preview.ts';
import { previewOf } from '../../support/fixtures/previewed.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, routeContentOf, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const snapshot = await compileSite(siteContent(keys));
const before = await previewOf(siteContent(keys));
const changed = siteContent(keys);
changed.routes = changed.routes.filter((route) => route !== routeContentOf(changed, 'prices'));
changed.route_sources = changed.route_sources.filter(({ route_id }) => route_id !== 'prices');
const after = await previewOf(changed);
const published = { revision: 7, head: snapshot.head, policyRevision: 7 };

/** The event of an allowed request that the change denies. */
const event: { readonly [name: string]: unknown } = (() => {
  const { events, verifier } = createTestVerifier({ snapshot });
  checkNow(verifier, signRequest(keys, { caller: 'broker', route: 'prices' }).facts);
  return JSON.parse(JSON.stringify(events[0]));
})();

function reportOf(...lines: readonly string[]) {
  const preview = new Preview({ before, after, published });
  for (const line of lines) preview.add(line);
  return preview.report();
}

const withMembers = (members: object) => JSON.stringify({ ...event, ...members });

describe('a line', () => {
  it('that a verifier wrote is judged', () => {
    expect(reportOf(JSON.stringify(event))).toMatchObject({
      judged: 1,
      newly_denied: { requests: 1, callers: [{ route_id: 'prices', reason: 'bundle_route_missing' }] },
      not_judged: {},
    });
  });

  it.each([
    ['not_json', 'msg=started'],
    ['not_json', '{"event":"proofgate.decision"'],
    ['not_a_decision', 'null'],
    ['not_a_decision', '[]'],
    ['not_a_decision', '{"event":{"toString":"proofgate.decision"}}'],
    ['not_a_decision', '{"__proto__":{"event":"proofgate.decision","outcome":"allowed"}}'],
    ['not_a_decision', JSON.stringify({ event: 'proofgate.audit_gap', lost: 3 })],
    ['event_malformed', withMembers({ outcome: 'maybe' })],
    ['event_malformed', withMembers({ subject: 'client:\u001b[2Jbilling' })],
    ['event_malformed', withMembers({ subject: ['client:billing'] })],
    ['event_malformed', withMembers({ subject: 'x'.repeat(513) })],
    ['event_malformed', withMembers({ issuer: undefined })],
    ['event_malformed', withMembers({ key_id: { length: 1 } })],
    ['event_malformed', withMembers({ key_binding: 'constructor' })],
    ['event_malformed', withMembers({ route_id: undefined })],
    ['event_malformed', withMembers({ method: 'GET\r\n' })],
    ['event_malformed', withMembers({ time: '2026-13-45T99:00:00.000Z' })],
    ['event_malformed', withMembers({ bundle_revision: 1e300 })],
    ['event_malformed', withMembers({ outcome: 'denied', reason: 'missing_context', unmet_attributes: [1] })],
    [
      'event_malformed',
      withMembers({
        ...{ outcome: 'denied', reason: 'missing_context', detail: 'team' },
        unmet_attributes: { missing_context: new Array(33).fill('team') },
      }),
    ],
    ['reason_unknown', withMembers({ outcome: 'denied', reason: 'toString' })],
    [
      'reason_unknown',
      withMembers({ outcome: 'denied', reason: 'invalid_request_proof', detail: 'constructor' }),
    ],
    ['no_bundle', withMembers({ outcome: 'denied', reason: 'bundle_policy_missing', auth_site: undefined })],
    ['other_site', withMembers({ auth_site: 'shop-eu-2' })],
    ['other_revision', withMembers({ bundle_revision: 6 })],
    ['other_revision', withMembers({ bundle_revision: 8 })],
    ['other_revision', withMembers({ bundle_head: 'A'.repeat(43) })],
    ['contradicts_site', withMembers({ route_id: '__proto__' })],
    ['contradicts_site', withMembers({ method: 'POST' })],
    ['contradicts_site', withMembers({ subject: 'spiffe://shop.example/ns/dev/sa/billing' })],
    ['contradicts_site', withMembers({ outcome: 'denied', reason: 'source_subject_mismatch' })],
    ['not_by_site', withMembers({ outcome: 'denied', reason: 'verifier_unavailable', detail: 'overloaded' })],
  ])('is %s: %s', (why, line) => {
    expect(reportOf(line)).toMatchObject({ judged: 0, not_judged: { [why]: 1 } });
  });
});

it('tells a bounded number of callers apart, and counts the requests of all', () => {
  const subjects = Array.from(
    { length: MAX_CALLERS + 5 },
    (_, n) => `spiffe://shop.example/ns/prod/sa/n${n}`,
  );
  const { newly_denied: denied } = reportOf(...subjects.map((subject) => withMembers({ subject })));
  expect(denied).toMatchObject({ requests: MAX_CALLERS + 5, other_requests: 5 });
  expect(denied.callers).toHaveLength(MAX_CALLERS);
});

it('splits a stream into lines, and holds none beyond the limit', async () => {
  const chunks = ['{"a"', ':1}\n\n', `${'x'.repeat(9)}`, 'y\nab', '\n12345678\n123456789\nend'];
  const lines: (string | undefined)[] = [];
  for await (const line of boundedLines(Readable.from(chunks.map((text) => Buffer.from(text))), 8))
    lines.push(line);
  expect(lines).toEqual(['{"a":1}', undefined, 'ab', '12345678', undefined, 'end']);
});
