/**
 * Rate limits per address, enrollment policy, operator and target. Each process counts alone, so that several instances
 * allow a multiple of each limit.
 * Source: specification "Limits" (throttling exists), docs/design/enrollment.md "Enrollment".
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiProblem } from '../domain/api-problem.ts';

/** Limits in requests per second, except failed sign-ins, which count per minute. */
export interface LimitOptions {
  /** Enrollment endpoints, per address (IPv6: per /64). */
  readonly workloadRequestsPerSecondPerAddress: number;
  /** Challenges and submissions, per enrollment policy. */
  readonly enrollmentsPerSecondPerPolicy: number;
  readonly requestsPerSecondPerPrincipal: number;
  readonly requestsPerSecondPerTarget: number;
  /** Above this number in a minute, further failures of the address get `rate_limited` until the minute ends. */
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
  /** @throws ApiProblem `rate_limited` when the address has too many failures */
  count(request: FastifyRequest): Promise<void>;
}

/** Each call counts one request. @throws ApiProblem `rate_limited` with the time to wait */
export interface RequestLimits {
  address(request: FastifyRequest): Promise<void>;
  /** The handlers of challenges and submissions call it as soon as they know the policy. */
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
    address: async (request) => rejectExceeded(await byAddress(request)),
    policy: named(app, options.enrollmentsPerSecondPerPolicy),
    principal: named(app, options.requestsPerSecondPerPrincipal),
    target: named(app, options.requestsPerSecondPerTarget),
    failedSignIns: { count: async (request) => rejectExceeded(await failures(request)) },
  };
}

/** A rate limit keyed by a name from the request instead of its address. */
function named(app: FastifyInstance, max: number): (request: FastifyRequest, name: string) => Promise<void> {
  const names = new WeakMap<FastifyRequest, string>();
  const limit = app.createRateLimit({
    max,
    timeWindow: SECOND_MS,
    keyGenerator: (request) => names.get(request) ?? '',
  });
  return async (request, name) => {
    names.set(request, name);
    rejectExceeded(await limit(request));
  };
}

type LimitState = Awaited<ReturnType<ReturnType<FastifyInstance['createRateLimit']>>>;

function rejectExceeded(state: LimitState): void {
  if (!state.isAllowed && state.isExceeded) reject(state.ttlInSeconds);
}

function reject(retryAfterSeconds: number): never {
  throw new ApiProblem('rate_limited', undefined, { retryAfterSeconds: Math.max(1, retryAfterSeconds) });
}
