/**
 * Sends requests, 64 at a time, through each Envoy and protocol at once during a fault, then compares the callers' answers
 * with what the upstreams received.
 */
import { expect } from '@jest/globals';
import { REASONS } from '../../../src/protocol/reasons.ts';
import { headerValues, type WireResponse } from '../../../src/tools/conformance/wire/exchange.ts';
import { expectFailedCheck, type FailedCheck } from '../../support/harness/failed-check.ts';
import type { UpstreamRequest } from '../../support/harness/upstream.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { type Gateway, startGateway } from '../../support/site/gateway.ts';
import type { Site } from '../../support/site/site.ts';
import type { VerifierProcess } from '../../support/site/verifier.ts';
import { remainingMs, waitUntil } from '../../support/wait.ts';
import { type PlannedRequest, type RequestKind, RequestPlan } from './plan.ts';

const CONCURRENCY = 64;

/** So many meet a fault of the sidecar itself, a fifth of them one of anything else; more are sent before and after (`make soak`). */
const REQUESTS = Number(process.env.PROOFGATE_TEST_REQUESTS ?? 200);
export const SIDECAR_REQUESTS = REQUESTS;
export const OTHER_REQUESTS = Math.max(100, Math.floor(REQUESTS / 5));
/** Callers that wait half a second for each answer are slow. */
export const CAMPAIGN_TIMEOUT_MS = 300_000 + REQUESTS * 120;

/** Allowed, but Envoy had no connection to the API in time: on a busy machine the upstream of the tests is slow too. */
const API_UNREACHABLE = 'api_unreachable';

interface Answered {
  readonly planned: PlannedRequest;
  /** `200`, `reason/detail`, or {@link API_UNREACHABLE}. */
  readonly outcome: string;
  readonly isDuringFault: boolean;
}

export interface Campaign {
  readonly gateways: readonly Gateway[];
  /** Sends them and comes back when all are answered. */
  send(count: number): Promise<void>;
  /** Sends until so many that met the fault had this outcome: on a machine that is busy testing, Envoy does not wait for each. */
  sendUntilReported(outcome: string, count: number): Promise<void>;
  /** Requests from now on count as sent during the fault, until {@link healed}. */
  failing(): void;
  healed(): void;
  /** Outcomes of what was sent during the fault, and how often. */
  duringFault(): ReadonlyMap<string, number>;
  /** Outcomes of everything. */
  all(): ReadonlyMap<string, number>;
  /** Sends single rightly signed requests until one is let through. */
  untilOpen(): Promise<void>;
  /** Compares the answers with what upstreams received. */
  reckon(): void;
  stop(): Promise<void>;
}

export async function startCampaign(
  site: Site,
  verifier: VerifierProcess,
  envoys: readonly string[],
): Promise<Campaign> {
  const gateways: Gateway[] = [];
  for (const version of envoys)
    gateways.push(await startGateway(version, verifier, { shippedTimeouts: true }));
  const clients = gateways.flatMap((gateway) => gateway.clients);
  const plan = new RequestPlan(site, derivedKeyCaller(site));
  const answered: Answered[] = [];
  let isFailing = false;
  let turn = 0;

  async function sendOne(): Promise<string> {
    const client = clients[turn++ % clients.length];
    if (client === undefined) throw new Error('no client');
    const planned = plan.next();
    const isDuringFault = isFailing;
    const outcome = outcomeOf(await client.send(planned.request), planned);
    answered.push({ planned, outcome, isDuringFault });
    return planned.kind === 'valid' ? outcome : '';
  }

  const counted = (wanted: (one: Answered) => boolean) =>
    count(answered.filter(wanted).map(({ outcome }) => outcome));
  const duringFault = () => counted(({ isDuringFault }) => isDuringFault);
  async function send(total: number): Promise<void> {
    let left = total;
    const caller = async () => {
      while (left-- > 0) await sendOne();
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, caller));
  }
  return {
    gateways,
    send,
    async sendUntilReported(outcome, total) {
      const missing = () => total - (duringFault().get(outcome) ?? 0);
      while (missing() > 0) {
        if (remainingMs(0) === 0) throw new Error(`only seen: ${describe(duringFault())}`);
        await send(missing());
      }
    },
    failing: () => {
      isFailing = true;
    },
    healed: () => {
      isFailing = false;
    },
    duringFault,
    all: () => counted(() => true),
    async untilOpen() {
      await waitUntil(async () => (await sendOne()) === '200');
    },
    reckon: () =>
      reckon(
        plan,
        answered,
        gateways.flatMap(({ upstream }) => upstream.requests),
      ),
    async stop() {
      for (const gateway of gateways) await gateway.stop();
    },
  };
}

const FAILED_CHECKS: readonly string[] = ['no_answer', 'no_decision'] satisfies readonly FailedCheck[];
const DENIAL_STATUSES = [401, 403, 503];
/** The kinds of requests that may be allowed. */
const OF_PROOFS: ReadonlySet<RequestKind> = new Set<RequestKind>(['valid', 'replayed']);

/** Every answer is the API's, or says what failed: in a header and, with the same words, in the body. */
function outcomeOf(response: WireResponse, { kind, number }: PlannedRequest): string {
  const [reason, ...more] = headerValues(response.headers, 'x-proofgate-reason');
  if (response.status === 200) {
    expect([reason, OF_PROOFS.has(kind)]).toEqual([undefined, true]);
    return '200';
  }
  const what = `${kind} ${number}: ${response.status} ${response.body.toString('utf8')}`;
  expect([what, DENIAL_STATUSES.includes(response.status), more]).toEqual([what, true, []]);
  if (reason === undefined && /^upstream connect error/.test(response.body.toString('utf8'))) {
    expect([what, response.status, OF_PROOFS.has(kind)]).toEqual([what, 503, true]);
    return API_UNREACHABLE;
  }
  expect([what, reason === undefined]).toEqual([what, false]);
  const problem: { readonly reason: string; readonly detail?: string } = JSON.parse(response.body.toString());
  expect([what, problem.reason]).toEqual([what, reason]);
  expect(REASONS).toContain(reason);
  const { detail } = problem;
  if (FAILED_CHECKS.includes(detail ?? '')) expectFailedCheck(response, detail as FailedCheck);
  else expect(headerValues(response.headers, 'x-proofgate-decision-id')).toHaveLength(1);
  return detail === undefined ? `${reason}` : `${reason}/${detail}`;
}

/** 0 unverified requests at the upstream: each was rightly signed, as it arrived, let through once, and answered so. */
function reckon(
  plan: RequestPlan,
  answered: readonly Answered[],
  forwarded: readonly UpstreamRequest[],
): void {
  const arrived = forwarded.map(({ body, headers, method, url }) => {
    const number = Number(/^\/v1\/orders\?n=(\d+)$/.exec(url)?.[1]);
    const isSigned = method === 'POST' && plan.validBody(number) === body.toString('utf8');
    const isDecided = headerValues(headers, 'x-proofgate-decision-id').length === 1;
    return { number, url, isSigned, isDecided };
  });
  expect(arrived.filter(({ isDecided, isSigned }) => !isSigned || !isDecided)).toEqual([]);
  const numbers = arrived.map(({ number }) => number);
  expect(repeated(numbers)).toEqual([]);
  const answeredBy = (wanted: string) =>
    answered.filter(({ outcome }) => outcome === wanted).map(({ planned }) => planned.number);
  const unreachable = new Set(answeredBy(API_UNREACHABLE));
  expect(ascending(answeredBy('200'))).toEqual(
    ascending(numbers.filter((number) => !unreachable.has(number))),
  );
}

const ascending = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

function repeated(numbers: readonly number[]): readonly number[] {
  return numbers.filter((number, at) => numbers.indexOf(number) !== at);
}

function count(outcomes: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return new Map([...counts].sort());
}

/** Ends the fault: requests pass again, the answers match what upstreams received, and enough requests met the fault. */
export async function expectRecovery(what: string, campaign: Campaign, requests: number): Promise<void> {
  campaign.healed();
  await campaign.untilOpen();
  await campaign.send(Math.ceil(requests / 10));
  campaign.reckon();
  expect(sum(campaign.duringFault())).toBeGreaterThanOrEqual(requests);
  logSummary(what, campaign);
}

function describe(outcomes: ReadonlyMap<string, number>): string {
  return [...outcomes].map(([outcome, times]) => `${outcome} ${times}`).join(', ');
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, each) => total + each, 0);
}

/** Logs a summary for the person who runs the test: how often each answer came. */
export function logSummary(what: string, campaign: Campaign): void {
  const sent = sum(campaign.all());
  const met = sum(campaign.duringFault());
  const forwarded = campaign.gateways.reduce((total, { upstream }) => total + upstream.requests.length, 0);
  const during = describe(campaign.duringFault());
  process.stderr.write(`${what}: ${sent} sent, ${forwarded} forwarded; ${met} during the fault: ${during}\n`);
}
