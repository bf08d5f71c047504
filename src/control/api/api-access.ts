/**
 * Authentication and authorization of requests. Each route declares its access; only this module checks it.
 * - `public`: no check. - `workload`: no check here; the handler verifies the workload's own proof. - `target`: a target token.
 * - `signed_in`: any operator; the handler limits the result to what they may read. - `operator`: an operator with the
 *   permission at the place. - `operator_or_workload`: `workload` with `Authorization: Proofgate-Key …`, else `operator`.
 * Source: docs/operate/control.md "Scope, permissions, secrets".
 */

import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  ACK_SIGNATURE_HEADER,
  ENFORCED_HEADER,
  INSTANCE_HEADER,
  MEMBERS_HEADER,
} from '../../bundle/format/bundle-limits.ts';
import { POLL_SCHEME } from '../../protocol/enrollment.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import { ApiProblem, type ProblemCode } from '../domain/api-problem.ts';
import { mayDo, type Permission, type ScopePath } from '../domain/roles.ts';
import type { Operators, Principal } from '../operators/operators.ts';
import type { Distribution } from '../publishing/distribution.ts';
import type { ReportingTarget } from '../publishing/target-tokens.ts';
import type { ControlStore, Transaction } from '../store/port.ts';
import type { FailedSignIns, RequestLimits } from './rate-limits.ts';

/**
 * Finds the place of the request's resource; undefined when the resource does not exist. Runs after the request was
 * validated. `{}` is the installation.
 */
export type ScopePathOf = (request: FastifyRequest, tx: Transaction) => Promise<ScopePath | undefined>;

interface OperatorAccess {
  readonly permission: Permission;
  readonly place: ScopePathOf;
  /** Error code when the resource does not exist or the caller may not read it. Default: `not_found`. */
  readonly absent?: ProblemCode;
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
    /** Required for every API route; registering a route without it throws. */
    access?: RouteAccess;
  }
  interface FastifyRequest {
    /** The operator that sent the request; null where the route's access is not for operators. Read it with `principalOf`. */
    principal: Principal | null;
    /** The target that sent the request. Read it with `targetOf`. */
    target: ReportingTarget | null;
  }
}

/** The operator that sent the request. For routes of `signed_in` and `operator` access only. */
export function principalOf({ principal }: FastifyRequest): Principal {
  if (principal === null) throw new ApiProblem('authentication_required');
  return principal;
}

/** The target that sent the request. For routes of `target` access only. */
export function targetOf({ target }: FastifyRequest): ReportingTarget {
  if (target === null) throw new ApiProblem('authentication_required');
  return target;
}

/** Whether the request carries a workload's signature instead of a token (docs/design/enrollment.md "Enrollment"). */
export function isFromWorkload({ headers }: FastifyRequest): boolean {
  return headers.authorization?.split(' ', 1)[0]?.toLowerCase() === POLL_SCHEME.toLowerCase();
}

interface AccessOptions {
  readonly store: ControlStore;
  readonly operators: Operators;
  readonly targets: Pick<Distribution, 'authenticate'>;
  readonly sessionCookieName: string;
  /** Origins of this Control's public URLs, `scheme://authority`. */
  readonly origins: readonly string[];
  readonly limits: RequestLimits;
}

/** Identifies the caller. Runs before the body is read. */
export function authenticator(options: AccessOptions): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    switch (accessOf(request)?.kind) {
      case 'target':
        return authenticateTarget(request, options);
      case 'signed_in':
      case 'operator':
        return authenticateOperator(request, options);
      case 'operator_or_workload':
        if (isFromWorkload(request)) return options.limits.address(request);
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
  const names = [MEMBERS_HEADER, ENFORCED_HEADER, INSTANCE_HEADER, ACK_SIGNATURE_HEADER];
  const [members, enforced, instance, signature] = names.map((name) => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join() : value;
  });
  request.target = await counted(request, limits.failedSignIns, () =>
    targets.authenticate(authorization, { members, enforced, instance, signature }),
  );
  await limits.target(request, request.target.targetId);
}

async function authenticateOperator(request: FastifyRequest, options: AccessOptions) {
  const { operators, limits, sessionCookieName, origins } = options;
  const credentials = {
    authorization: request.headers.authorization,
    sessionCookie: request.cookies[sessionCookieName],
  };
  const principal = await counted(request, limits.failedSignIns, () => operators.authenticate(credentials));
  // A browser adds its cookie to requests of other sites too, but never an Authorization header (docs/operate/control-api.md "API").
  if (credentials.authorization === undefined) assertSameOrigin(request, origins);
  await limits.principal(request, principal.actor);
  request.principal = principal;
}

/**
 * Counts a failed sign-in for its address. Failures of others never block valid credentials: gateways share their
 * cluster's address with its workloads, and callers behind a proxy share the proxy's. Tokens hold 256 random bits, so
 * guessing is hopeless.
 */
export async function counted<T>(
  request: FastifyRequest,
  failed: FailedSignIns,
  authenticate: () => Promise<T>,
): Promise<T> {
  try {
    return await authenticate();
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'authentication_required') await failed.count(request);
    throw error;
  }
}

/**
 * Checks the permission. A resource that the caller may not read answers 404 for every method, exactly like one that
 * does not exist. One that they may read, but not change, answers 403. The installation itself is no secret: 403.
 */
export function authorizer({ store }: Pick<AccessOptions, 'store'>) {
  return async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const access = accessOf(request);
    if (access?.kind !== 'operator' && access?.kind !== 'operator_or_workload') return;
    if (access.kind === 'operator_or_workload' && isFromWorkload(request)) return;
    const { roles } = principalOf(request);
    const place = await store.read((tx) => access.place(request, tx));
    const absent = access.absent ?? 'not_found';
    if (place === undefined) throw new ApiProblem(absent);
    if (mayDo(roles, access.permission, place)) return;
    const isInstallation = Object.values(place).every((id) => id === undefined);
    throw new ApiProblem(isInstallation || mayDo(roles, 'read', place) ? 'permission_denied' : absent);
  };
}

/** Rejects a route without declared access. @throws Error at start-up */
export function requireDeclaredAccess(route: {
  readonly method: string | readonly string[];
  readonly url: string;
  readonly config?: { readonly access?: RouteAccess };
}): void {
  if (route.config?.access !== undefined) return;
  throw new Error(`route ${String(route.method)} ${route.url} does not declare its access`);
}

/**
 * Cross-site request forgery check: a request that changes something must come from one of Control's own pages. The
 * session cookie's `SameSite` attribute is the first defence; this is the second.
 * Source: docs/operate/control-api.md "API"; Fetch Metadata Request Headers (W3C), RFC 6454 section 7.
 */

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Current browsers send `Sec-Fetch-Site`, older ones only `Origin`. A change with neither is rejected. A read is rejected
 * when it comes from another site's page, or from a sibling's, whose requests carry a `SameSite` cookie.
 * @param origins allowed origins, `scheme://authority`
 * @throws ApiProblem `origin_forbidden`
 */
export function assertSameOrigin(request: FastifyRequest, origins: readonly string[]): void {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (SAFE_METHODS.has(request.method)) {
    // `none`: the operator typed the address.
    if (site === undefined || site === 'same-origin' || site === 'none') return;
    throw new ApiProblem('origin_forbidden');
  }
  if (origin !== undefined && !origins.includes(origin)) throw new ApiProblem('origin_forbidden');
  if (site !== undefined && site !== 'same-origin') throw new ApiProblem('origin_forbidden');
  if (origin === undefined && site === undefined) throw new ApiProblem('origin_forbidden');
}

/** Value of a path parameter that the route's schema has checked. A missing one means `not_found`. */
export function pathText({ params }: FastifyRequest, name: string): string {
  const value = isJsonObject(params) ? params[name] : undefined;
  if (typeof value !== 'string') throw new ApiProblem('not_found');
  return value;
}

/** The installation: the place of resources outside every environment. */
export const installation: ScopePathOf = async () => ({});

/** `…/environments/:environment_id…` */
export const environmentInPath: ScopePathOf = async (request, tx) => {
  const environment = await tx.environments.find(pathText(request, 'environment_id'));
  return environment && { environmentId: environment.id };
};

/** `…/fleets/:fleet_id…` */
export const fleetInPath: ScopePathOf = async (request, tx) => {
  const fleet = await tx.fleets.find(pathText(request, 'fleet_id'));
  return fleet && { environmentId: fleet.environmentId, fleetId: fleet.id };
};

/** `…/sites/:site_id…` */
export const siteInPath: ScopePathOf = (request, tx) =>
  tx.hierarchy.placeOfSite(pathText(request, 'site_id'));

/** `…/targets/:target_id…` */
export const targetInPath: ScopePathOf = async (request, tx) => {
  const target = await tx.targets.find(pathText(request, 'target_id'));
  return target && tx.hierarchy.placeOfSite(target.siteId);
};
