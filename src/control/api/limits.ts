/**
 * How often somebody may ask: an address, an enrollment policy, an operator, a target. Counted in this process alone;
 * several Controls allow that many times as much.
 * Source: specification "Limits" (throttling exists), docs/control.md "Enrollment".
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Refusal } from '../domain/refusal.ts';

/** Each limit is a number of requests in one second, but failed sign-ins, which are counted a minute. */
export interface LimitOptions {
  /** Enrollment endpoints, for each address (IPv6: each /64). */
  readonly workloadRequestsPerSecondPerAddress: number;
  /** Challenges and submissions, for each enrollment policy. */
  readonly enrollmentsPerSecondPerPolicy: number;
  readonly requestsPerSecondPerPrincipal: number;
  readonly requestsPerSecondPerTarget: number;
  /** After that many in a minute, those of the address that fail are told `rate_limited` until the minute is over. */
  readonly failedSignInsPerMinutePerAddress: number;
}

export const DEFAULT_LIMITS: LimitOptions = {
  workloadRequestsPerSecondPerAddress: 20,
  enrollmentsPerSecondPerPolicy: 50,
  requestsPerSecondPerPrincipal: 50,
  requestsPerSecondPerTarget: 50,
  failedSignInsPerMinutePerAddress: 60,
};

export interface FailedSignIns {
  /** @throws Refusal `rate_limited` when the address has too many */
  count(request: FastifyRequest): Promise<void>;
}

/** Each takes one turn. @throws Refusal `rate_limited`, saying when to ask again */
export interface RequestLimits {
  address(request: FastifyRequest): Promise<void>;
  /** For whoever handles challenges and submissions, as soon as the policy is known. */
  policy(request: FastifyRequest, policyReference: string): Promise<void>;
  principal(request: FastifyRequest, actor: string): Promise<void>;
  target(request: FastifyRequest, targetId: string): Promise<void>;
  readonly failedSignIns: FailedSignIns;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;

/** @param app with @fastify/rate-limit registered */
export function requestLimits(app: FastifyInstance, options: LimitOptions): RequestLimits {
  const byAddress = app.createRateLimit({
    max: options.workloadRequestsPerSecondPerAddress,
    timeWindow: SECOND_MS,
  });
  const failures = app.createRateLimit({
    max: options.failedSignInsPerMinutePerAddress,
    timeWindow: MINUTE_MS,
  });
  return {
    address: async (request) => refuseExceeded(await byAddress(request)),
    policy: named(app, options.enrollmentsPerSecondPerPolicy),
    principal: named(app, options.requestsPerSecondPerPrincipal),
    target: named(app, options.requestsPerSecondPerTarget),
    failedSignIns: { count: async (request) => refuseExceeded(await failures(request)) },
  };
}

/** A limit on something that a request names, rather than its address. */
function named(app: FastifyInstance, max: number): (request: FastifyRequest, name: string) => Promise<void> {
  const names = new WeakMap<FastifyRequest, string>();
  const limit = app.createRateLimit({
    max,
    timeWindow: SECOND_MS,
    keyGenerator: (request) => names.get(request) ?? '',
  });
  return async (request, name) => {
    names.set(request, name);
    refuseExceeded(await limit(request));
  };
}

type LimitState = Awaited<ReturnType<ReturnType<FastifyInstance['createRateLimit']>>>;

function refuseExceeded(state: LimitState): void {
  if (!state.isAllowed && state.isExceeded) refuse(state.ttlInSeconds);
}

function refuse(retryAfterSeconds: number): never {
  throw new Refusal('rate_limited', undefined, { retryAfterSeconds: Math.max(1, retryAfterSeconds) });
}
