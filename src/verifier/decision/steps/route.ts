/** Step 1: the route matches a policy in the loaded bundle (specification "Request evaluation order"). */
import type { Route, Snapshot } from '../../../bundle/compile/snapshot.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { isCanonicalTarget, normalizeAuthority, pathOf } from '../../../protocol/request-target.ts';
import type { RequestHead } from '../facts/request-facts.ts';

export interface MatchedRoute {
  readonly route: Route;
  /** Lower case, without the scheme's default port: the form that the transcript must state. */
  readonly authority: string;
}

/** Matches target, origin, method and template to one route. */
export function matchRoute(facts: RequestHead, snapshot: Snapshot): MatchedRoute | Denial {
  if (!isCanonicalTarget(facts.target)) return deny('bundle_route_missing', 'path_not_canonical');
  const authority = normalizeAuthority(facts.scheme, facts.authority);
  const match = snapshot.routes.match(facts.method, `${facts.scheme}://${authority}`, pathOf(facts.target));
  return match.kind === 'route'
    ? { route: match.route, authority }
    : deny('bundle_route_missing', match.detail);
}
