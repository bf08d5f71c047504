/** One request through a gateway, and what each party recorded about it. */
import { expect } from '@jest/globals';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { Reason } from '../../../src/protocol/reasons.ts';
import {
  headerValues,
  type WireClient,
  type WireRequest,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import type { UpstreamRequest } from '../harness/upstream.ts';
import type { Gateway } from './gateway.ts';
import { decisionKey } from './verifier.ts';

export interface Observed {
  readonly response: WireResponse;
  readonly forwarded: readonly UpstreamRequest[];
  /** By how much each count of `proofgate_decisions_total` grew; those that did not are left out. */
  readonly counted: ReadonlyMap<string, number>;
}

export async function observe(gateway: Gateway, client: WireClient, request: WireRequest): Promise<Observed> {
  const [observed] = await observeAll(gateway, async () => [await client.send(request)]);
  if (observed === undefined) throw new Error('no answer was observed');
  return observed;
}

/** Several requests at once: what was forwarded and counted is that of all of them. */
async function observeAll(
  { upstream, verifier }: Gateway,
  send: () => Promise<readonly WireResponse[]>,
): Promise<readonly Observed[]> {
  const before = await verifier.decisions();
  upstream.clear();
  const responses = await send();
  const forwarded = [...upstream.requests];
  const counted = growth(before, await verifier.decisions());
  return responses.map((response) => ({ response, forwarded, counted }));
}

export function growth(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const grown = [...after].map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const);
  return new Map(grown.filter(([, count]) => count !== 0));
}

export interface ExpectedDenial {
  readonly reason: Reason;
  readonly detail?: string | undefined;
  readonly routeId?: string | undefined;
  /** Whether the caller's identity was verified before the denial. Default false. */
  readonly callerVerified?: boolean;
  /** False where the fault is that nothing can be recorded. Default true. */
  readonly isRecorded?: boolean;
}

const UNAVAILABLE: ReadonlySet<Reason> = new Set<Reason>([
  'bundle_policy_missing',
  'bundle_freshness_unknown',
  'stale_bundle_fail_closed',
  'replay_store_unavailable',
  'verifier_unavailable',
]);

function statusOf({ detail, reason }: ExpectedDenial): number {
  if (UNAVAILABLE.has(reason)) return 503;
  return reason === 'invalid_request_proof' && detail !== 'audience' ? 401 : 403;
}

/** Names of attributes and headers are no labels. */
function labelOf({ detail, reason }: ExpectedDenial): string | undefined {
  if (/_provenance$|^provenance_|_context$|^context_/.test(reason)) return '';
  return detail?.startsWith('header.') ? 'header' : detail;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Status, body, headers, audit event, metric, and a silent upstream. @returns the decision's ID */
export async function expectDenial(
  gateway: Gateway,
  observed: Observed,
  expected: ExpectedDenial,
): Promise<string> {
  const { detail, reason, routeId } = expected;
  const decisionId = expectDenialAnswer(observed.response, expected);
  expect(observed.forwarded).toEqual([]);
  expect(observed.counted).toEqual(new Map([[decisionKey('denied', reason, labelOf(expected), routeId), 1]]));
  if (expected.isRecorded === false) {
    expect(await gateway.verifier.auditEvents()).toEqual([]);
    return decisionId;
  }
  const event: DecisionEvent = await gateway.verifier.auditEvent(decisionId);
  expect(event).toMatchObject({
    event: 'proofgate.decision',
    decision_id: decisionId,
    outcome: 'denied',
    reason,
    status: statusOf(expected),
    caller_verified: expected.callerVerified ?? false,
  });
  expect([event.detail, event.route_id]).toEqual([detail, routeId]);
  return decisionId;
}

function expectDenialAnswer(response: WireResponse, expected: ExpectedDenial): string {
  const { detail, reason, routeId } = expected;
  const status = statusOf(expected);
  const problem: Record<string, unknown> = JSON.parse(response.body.toString('utf8'));
  expect(problem).toStrictEqual({
    type: `urn:proofgate:denial:${reason}`,
    title: expect.stringMatching(/^[A-Z]/),
    status,
    reason,
    ...(detail === undefined ? {} : { detail }),
    ...(routeId === undefined ? {} : { route_id: routeId }),
    decision_id: expect.stringMatching(UUID),
  });
  expect(response.status).toBe(status);
  const values = (name: string) => headerValues(response.headers, name);
  expect(values('content-type')).toEqual(['application/problem+json']);
  expect(values('cache-control')).toEqual(['no-store']);
  expect(values('x-proofgate-reason')).toEqual([reason]);
  expect(values('x-proofgate-decision-id')).toEqual([problem.decision_id]);
  expect(values('www-authenticate')).toEqual(status === 401 ? ['Passport'] : []);
  expect(values('retry-after')).toEqual(status === 503 && reason !== 'bundle_freshness_unknown' ? ['1'] : []);
  return String(problem.decision_id);
}

export interface ExpectedAllowance {
  readonly routeId: string;
  readonly subject: string;
}

/** 200, one request at the upstream, an audit event of the same decision, and a count. @returns what arrived there */
export async function expectAllowed(
  gateway: Gateway,
  { counted, forwarded, response }: Observed,
  { routeId, subject }: ExpectedAllowance,
): Promise<UpstreamRequest> {
  expect([response.status, headerValues(response.headers, 'x-proofgate-reason')]).toEqual([200, []]);
  const [arrived] = forwarded;
  if (arrived === undefined || forwarded.length > 1) throw new Error(`${forwarded.length} were forwarded`);
  expect(counted).toEqual(new Map([[decisionKey('allowed', '', '', routeId), 1]]));
  const values = (name: string) => headerValues(arrived.headers, name);
  expect(values('x-proofgate-subject')).toEqual([subject]);
  expect(values('x-proofgate-route-id')).toEqual([routeId]);
  const [decisionId = ''] = values('x-proofgate-decision-id');
  const event = await gateway.verifier.auditEvent(decisionId);
  expect(event).toMatchObject({ outcome: 'allowed', route_id: routeId, subject, caller_verified: true });
  return arrived;
}
