/**
 * Who may call a route: declared with the route, checked here and nowhere else.
 * - `public`: anybody. - `workload`: anybody, the handler checks the workload's own proof. - `target`: a target's token.
 * - `signed_in`: any operator; the handler shows only what they may read. - `operator`: an operator who holds the
 *   permission at the place. - `operator_or_workload`: with `Authorization: Proofgate-Key …` as `workload`, otherwise as
 *   `operator`.
 * Source: docs/control.md "Scope, permissions, secrets".
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { POLL_SCHEME } from '../../protocol/enrollment.ts';
import { Refusal, type RefusalCode } from '../domain/refusal.ts';
import { mayDo, type Permission, type Place } from '../domain/roles.ts';
import type { Distribution } from '../publishing/distribution.ts';
import type { Operators, Principal } from '../services.ts';
import type { ControlStore, Transaction } from '../store/port.ts';
import type { FailedSignIns, RequestLimits } from './limits.ts';
import { assertSameOrigin } from './origin-check.ts';

/**
 * Where the request's resource lies; undefined when it is not there. Runs after the request's shape was checked.
 * `{}` is the installation.
 */
export type PlaceOf = (request: FastifyRequest, tx: Transaction) => Promise<Place | undefined>;

interface OperatorAccess {
  readonly permission: Permission;
  readonly place: PlaceOf;
  /** What is told when it is not there, or not for them. Default: `not_found`. */
  readonly absent?: RefusalCode;
}

export type RouteAccess =
  | { readonly kind: 'public' }
  | { readonly kind: 'workload' }
  | { readonly kind: 'target' }
  | { readonly kind: 'signed_in' }
  | ({ readonly kind: 'operator' } & OperatorAccess)
  | ({ readonly kind: 'operator_or_workload' } & OperatorAccess);

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Every route of the API declares it, or registering it throws. */
    access?: RouteAccess;
  }
  interface FastifyRequest {
    /** The operator who asks; null where the route's access is for others. Read it with `principalOf`. */
    principal: Principal | null;
    /** The target that asks. Read it with `targetIdOf`. */
    targetId: string | null;
  }
}

/** The operator who asks. For routes of `signed_in` and `operator` access only. */
export function principalOf({ principal }: FastifyRequest): Principal {
  if (principal === null) throw new Refusal('authentication_required');
  return principal;
}

/** The target that asks. For routes of `target` access only. */
export function targetIdOf({ targetId }: FastifyRequest): string {
  if (targetId === null) throw new Refusal('authentication_required');
  return targetId;
}

/** Whether the caller comes as a workload, with its own word instead of a token (docs/control.md "Enrollment"). */
export function comesAsWorkload({ headers }: FastifyRequest): boolean {
  return headers.authorization?.split(' ', 1)[0]?.toLowerCase() === POLL_SCHEME.toLowerCase();
}

export interface AccessOptions {
  readonly store: ControlStore;
  readonly operators: Operators;
  readonly targets: Pick<Distribution, 'authenticate'>;
  readonly sessionCookieName: string;
  /** Origins that browsers know this Control under, `scheme://authority`. */
  readonly origins: readonly string[];
  readonly limits: RequestLimits;
}

/** Who asks? Before anything of the body is read. */
export function authenticator(options: AccessOptions): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    switch (accessOf(request)?.kind) {
      case 'target':
        return authenticateTarget(request, options);
      case 'signed_in':
      case 'operator':
        return authenticateOperator(request, options);
      case 'operator_or_workload':
        if (comesAsWorkload(request)) return options.limits.address(request);
        return authenticateOperator(request, options);
      case 'workload':
        return options.limits.address(request);
      case 'public':
      case undefined:
        return;
    }
  };
}

function accessOf(request: FastifyRequest): RouteAccess | undefined {
  return request.routeOptions.config.access;
}

async function authenticateTarget(request: FastifyRequest, { targets, limits }: AccessOptions) {
  const { authorization } = request.headers;
  request.targetId = await counted(request, limits.failedSignIns, () => targets.authenticate(authorization));
  await limits.target(request, request.targetId);
}

async function authenticateOperator(request: FastifyRequest, options: AccessOptions) {
  const { operators, limits, sessionCookieName, origins } = options;
  const credentials = {
    authorization: request.headers.authorization,
    sessionCookie: request.cookies[sessionCookieName],
  };
  const principal = await counted(request, limits.failedSignIns, () => operators.authenticate(credentials));
  // A browser sends its cookie whoever made it ask (docs/control.md "API"); a header it sends for nobody else.
  if (credentials.authorization === undefined) assertSameOrigin(request, origins);
  await limits.principal(request, principal.actor);
  request.principal = principal;
}

/**
 * Counts a failure against its address. Whoever holds good credentials is let in whatever others send from there: gateways
 * share the address of their cluster with its workloads, and everybody that of a proxy. Tokens have 256 random bits, so
 * that nothing is gained by trying more of them.
 */
async function counted<T>(
  request: FastifyRequest,
  failed: FailedSignIns,
  authenticate: () => Promise<T>,
): Promise<T> {
  try {
    return await authenticate();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'authentication_required') await failed.count(request);
    throw error;
  }
}

/**
 * May they? What somebody may not read is not there for them: 404, whatever they tried, exactly as for what does not
 * exist. What they may read and not do: 403. That there is an installation is no secret: 403.
 */
export function authorizer({ store }: Pick<AccessOptions, 'store'>) {
  return async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const access = accessOf(request);
    if (access?.kind !== 'operator' && access?.kind !== 'operator_or_workload') return;
    if (access.kind === 'operator_or_workload' && comesAsWorkload(request)) return;
    const { roles } = principalOf(request);
    const place = await store.read((tx) => access.place(request, tx));
    const absent = access.absent ?? 'not_found';
    if (place === undefined) throw new Refusal(absent);
    if (mayDo(roles, access.permission, place)) return;
    const isInstallation = Object.values(place).every((id) => id === undefined);
    throw new Refusal(isInstallation || mayDo(roles, 'read', place) ? 'permission_denied' : absent);
  };
}

/** A route that nobody declared access for must not be served. @throws Error at start-up */
export function requireDeclaredAccess(route: {
  readonly method: string | readonly string[];
  readonly url: string;
  readonly config?: { readonly access?: RouteAccess };
}): void {
  if (route.config?.access !== undefined) return;
  throw new Error(`route ${String(route.method)} ${route.url} does not declare its access`);
}
