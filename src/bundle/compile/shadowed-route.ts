/** For explanations: finds the route that a request without a route would have, if no other one took precedence. */
import { parsePathTemplate } from '../../protocol/path-template.ts';
import { RouteTree } from './route-table.ts';
import type { Route, RouteTable } from './snapshot.ts';

interface ShadowedRoute {
  readonly shadowed: Route;
  /** A literal of its template takes precedence, and leads to no route of the request's method. */
  readonly by: Route;
}

interface UnroutedRequest {
  readonly method: string;
  readonly origin: string;
  /** Canonical, without query. */
  readonly path: string;
}

/** Looks at every route: not for the request path. */
export function findShadowedRoute(table: RouteTable, request: UnroutedRequest): ShadowedRoute | undefined {
  const routes = table.all();
  const shadowed = routes.find((route) => route.method === request.method && matchesAmong([route], request));
  const by = routes.find((other) => shadowed !== undefined && !matchesAmong([shadowed, other], request));
  return shadowed === undefined || by === undefined ? undefined : { shadowed, by };
}

/** Whether the request has a route in a table of these alone. */
function matchesAmong(routes: readonly Route[], { method, origin, path }: UnroutedRequest): boolean {
  const tree = new RouteTree(new Set([origin]));
  for (const route of new Set(routes)) {
    const template = parsePathTemplate(route.pathTemplate);
    if (template.kind === 'template') tree.add(route, template.segments);
  }
  return tree.match(method, origin, path).kind === 'route';
}
