/** Selects the upstream of a request by the first segments of its path, which are then removed. */
import { type Origin, parseOrigin, pathOf } from '../../../protocol/request-target.ts';

export interface UpstreamRoute {
  /** Whole segments, such as `/shop`; empty for every path. */
  readonly prefix: string;
  readonly origin: Origin;
}

/** The fault of a route on the command line. */
export type RouteFault = 'prefix' | 'origin' | 'repeated' | 'none';

const PREFIX = /^(?:\/[A-Za-z0-9._~-]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/;

/**
 * @param upstream value of `--upstream`: the origin for all paths
 * @param routes values of `--route`: `PREFIX=ORIGIN`
 */
export function parseUpstreamRoutes(
  upstream: string | undefined,
  routes: readonly string[],
): readonly UpstreamRoute[] | RouteFault {
  const parsed: UpstreamRoute[] = [];
  for (const text of upstream === undefined ? routes : [`=${upstream}`, ...routes]) {
    const [, prefix = '/', originText = ''] = /^([^=]*)=(.*)$/.exec(text) ?? [];
    const isDefault = upstream !== undefined && parsed.length === 0;
    if (!isDefault && !PREFIX.test(prefix)) return 'prefix';
    const origin = parseOrigin(originText);
    if (origin === undefined) return 'origin';
    if (parsed.some((other) => other.prefix === prefix)) return 'repeated';
    parsed.push({ prefix, origin });
  }
  return parsed.length === 0 ? 'none' : parsed;
}

export interface Destination<R> {
  readonly route: R;
  /** Path and query for the upstream. */
  readonly target: string;
}

/**
 * The route with the longest prefix.
 * @param target canonical
 */
export function destinationOf<R extends UpstreamRoute>(
  routes: readonly R[],
  target: string,
): Destination<R> | undefined {
  const path = pathOf(target);
  let found: R | undefined;
  for (const route of routes) {
    const fits = path === route.prefix || path.startsWith(`${route.prefix}/`);
    if (fits && (found === undefined || route.prefix.length > found.prefix.length)) found = route;
  }
  if (found === undefined) return undefined;
  const rest = target.slice(found.prefix.length);
  return { route: found, target: rest.startsWith('/') ? rest : `/${rest}` };
}
