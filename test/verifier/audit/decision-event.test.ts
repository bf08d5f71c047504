/** One event a decision: what it says, what it never says, and its published schema. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import Schema from 'typebox/schema';
import type { CallContext } from '../../../src/process/connections/call-context.ts';
import { REASONS } from '../../../src/protocol/reasons.ts';
import { requestWith, snapshotWith, storeWith, TABLE_CALLERS } from '../../support/cases/faulty-site.ts';
import { faultsOf } from '../../support/cases/one-fault.ts';
import { BROKER_ISSUER, CLIENT_ISSUER, TRUST_DOMAIN } from '../../support/fixtures/bundle-content.ts';
import { type RequestEdits, type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const site = await compileSite(siteContent(keys));
const schema: { readonly properties: { readonly reason: { readonly enum: readonly string[] } } } = JSON.parse(
  readFileSync(new URL('../../../docs/reference/schema/decision-event.schema.json', import.meta.url), 'utf8'),
);

/** The event as it is written: without members that are undefined. */
function eventOf(
  plan: RequestPlan,
  edits: RequestEdits = {},
  call?: CallContext,
): { readonly [name: string]: unknown } {
  const { events, verifier } = createTestVerifier({ snapshot: site });
  checkNow(verifier, signRequest(keys, plan, edits).facts, call);
  expect(events).toHaveLength(1);
  return JSON.parse(JSON.stringify(events[0]));
}

const trace = '0af7651916cd43dd8448eb211c80319c';
const traceOfCheck = '4bf92f3577b34da6a3ce929d0e0e4736';
const traced: RequestEdits = { received: withTraceparent(`00-${trace}-b7ad6b7169203331-01`) };

function withTraceparent(value: string): NonNullable<RequestEdits['received']> {
  return (request) => ({ ...request, headers: [...request.headers, { name: 'traceparent', value }] });
}

describe('an event', () => {
  it('of an allowed request says who was let through, where, by which rule and bundle', () => {
    const { events, verifier } = createTestVerifier({ snapshot: site });
    const request = signRequest(keys, { caller: 'billing', route: 'orders-read' }, traced);
    const decision = checkNow(verifier, request.facts);
    expect(JSON.parse(JSON.stringify(events))).toEqual([
      {
        event: 'proofgate.decision',
        time: '2026-11-21T04:00:00.999Z',
        decision_id: decision.decisionId,
        outcome: 'allowed',
        auth_site: 'shop-eu-1',
        route_id: 'orders-read',
        method: 'GET',
        issuer: CLIENT_ISSUER,
        subject: 'client:billing',
        trust_domain: TRUST_DOMAIN,
        key_id: KEY_ID.billing,
        key_binding: 'software',
        client_id: 'billing',
        passport_id: expect.stringMatching(/^passport-/),
        caller_verified: true,
        transcript_sha256: hash('sha256', request.transcriptText, 'base64url'),
        bundle_revision: 7,
        bundle_head: site.head,
        matched_rule: 0,
        trace_id: trace,
        duration_us: expect.any(Number),
      },
    ]);
  });

  it('of a denied one marks what was not proven', () => {
    const event = eventOf(
      { caller: 'broker', route: 'orders-read' },
      {
        claims: (claims) => void Object.assign(claims, { sub: 'spiffe://shop.example/ns/prod/sa/admin' }),
        passportKey: keys.billing,
      },
    );
    expect(event).toMatchObject({
      outcome: 'denied',
      reason: 'invalid_request_proof',
      detail: 'passport_signature',
      status: 401,
      issuer: BROKER_ISSUER,
      subject: 'spiffe://shop.example/ns/prod/sa/admin',
      caller_verified: false,
      matched_rule: 2,
    });
    expect(event).not.toHaveProperty('client_id');
  });

  it('says when that was, whatever the one before it said', () => {
    const times = [1_700_000_000, 1_800_000_000, 1_700_000_000].map((nowSeconds) => {
      const { events, verifier } = createTestVerifier({ snapshot: site, nowSeconds });
      checkNow(verifier, signRequest(keys, { caller: 'billing', route: 'orders-read', nowSeconds }).facts);
      return events[0]?.time;
    });
    expect(times).toEqual([
      '2023-11-14T22:13:20.999Z',
      '2027-01-15T08:00:00.999Z',
      '2023-11-14T22:13:20.999Z',
    ]);
  });

  it('of a replay says whose it was', () => {
    const { events, verifier } = createTestVerifier({ snapshot: site });
    const { facts } = signRequest(keys, { caller: 'billing', route: 'orders-read' });
    checkNow(verifier, facts);
    checkNow(verifier, facts);
    expect(events[1]).toMatchObject({ outcome: 'denied', reason: 'jti_replay', caller_verified: true });
  });

  it('of a request that led nowhere says no more than that', () => {
    const event = eventOf(
      { caller: 'billing', route: 'orders-read' },
      { received: (request) => ({ ...request, target: '/nowhere', method: 'X'.repeat(500) }) },
    );
    expect(Object.keys(event).sort()).toEqual(
      [
        'event',
        'time',
        'decision_id',
        'outcome',
        'reason',
        'detail',
        'status',
        'auth_site',
        'method',
        'caller_verified',
        'bundle_revision',
        'bundle_head',
        'duration_us',
      ].sort(),
    );
    expect(event.method).toBe('X'.repeat(32));
    expect(Schema.Check(schema, event)).toBe(true);
  });

  it.each([
    [trace, traced],
    [traceOfCheck, {}],
    [traceOfCheck, { received: withTraceparent('x') }],
  ])('has the trace %s: of the request, or else of the caller', (traceId, edits: RequestEdits) => {
    const call: CallContext = {
      waitedTooLong: false,
      trace: undefined,
      traceparent: () => `00-${traceOfCheck}-00f067aa0ba902b7-00`,
      isGone: () => false,
    };
    expect(eventOf({ caller: 'billing', route: 'orders-read' }, edits, call)).toMatchObject({
      trace_id: traceId,
    });
  });

  it.each([
    '',
    'x',
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${trace}-b7ad6b7169203331-01,`,
    `00-${trace.toUpperCase()}-b7ad6b7169203331-01`,
  ])('has no trace for %j', (value) => {
    const edits = { received: withTraceparent(value) };
    expect(eventOf({ caller: 'billing', route: 'orders-read' }, edits)).not.toHaveProperty('trace_id');
  });
});

describe('every event of the decision table', () => {
  const rows = TABLE_CALLERS.flatMap((caller) =>
    faultsOf(caller).map((fault) => ({ caller, fault, name: `${caller}: ${fault.outcome}` })),
  );

  it.each(rows)('$name', async ({ caller, fault }) => {
    const snapshot = await snapshotWith(keys, [fault]);
    const { events, verifier } = createTestVerifier({ snapshot, store: storeWith([fault]) });
    const request = requestWith(keys, caller, [fault]);
    checkNow(verifier, request.facts);
    const text = JSON.stringify(events[0]);
    const event: { readonly [name: string]: unknown } = JSON.parse(text);
    expect(Schema.Errors(schema, event)).toEqual([true, []]);
    expect(`${[event.reason, event.detail].filter(Boolean).join('/')} ${event.status}`).toBe(fault.outcome);
    expect(event.caller_verified).toBe(fault.step === 6);
    const [, claims, passportSignature] = request.jws.split('.');
    const transcript = Buffer.from(request.transcriptText).toString('base64url');
    const secrets = [request.jws, claims, passportSignature, transcript, request.jti];
    secrets.push(request.signature.toString('base64url'));
    expect(secrets.filter((secret) => secret === undefined || text.includes(secret))).toEqual([]);
  });
});

describe('the schema', () => {
  it('knows every reason', () => {
    expect([...schema.properties.reason.enum].sort()).toEqual([...REASONS].sort());
  });

  it('refuses what is no event', () => {
    const event = eventOf({ caller: 'billing', route: 'orders-read' });
    expect(Schema.Check(schema, event)).toBe(true);
    const { subject: _, ...withoutSubject } = event;
    for (const other of [
      {},
      withoutSubject,
      { ...event, outcome: 'denied' },
      { ...event, reason: 'jti_replay' },
      { ...event, caller_verified: false },
      { ...event, time: '2026-11-21' },
      { ...event, duration_us: -1 },
    ]) {
      expect(Schema.Check(schema, other)).toBe(false);
    }
  });
});
