/**
 * Reads Caddy's JSON configuration, as `caddy adapt` prints it, as chains of handlers in the order in which they run.
 * Source: Caddy, "JSON Config Structure".
 */
import type { View } from '../gateway/view.ts';

/** One handler of a chain. */
export interface Step {
  readonly kind: string;
  readonly view: View;
  /** The matcher of its route; undefined if every request of the chain reaches it. */
  readonly condition: View | undefined;
  /** Whether no later handler gets the request. */
  readonly isEnd: boolean;
  /** For `intercept`: the handlers that run on the answer of a later handler. */
  readonly onAnswer: readonly Chain[];
}

/** Handlers that one request may run, in their order. */
export type Chain = readonly Step[];

export interface Caddy {
  readonly servers: readonly View[];
  readonly chains: readonly Chain[];
}

/** Undefined for documents without an HTTP server. */
export function readCaddy(documents: readonly View[]): Caddy | undefined {
  const servers = documents.flatMap((one) => one.at('apps', 'http', 'servers')?.members() ?? []);
  if (servers.length === 0) return undefined;
  const views = servers.map(({ view }) => view);
  return { servers: views, chains: views.flatMap(chainsOfServer) };
}

/** Includes those of `handle_errors`, which run after an error, such as a check without an answer. */
function chainsOfServer(server: View): readonly Chain[] {
  const named = { routes: server.get('named_routes'), within: [] };
  const roots = [server.list('routes'), server.get('errors')?.list('routes') ?? []];
  return roots.flatMap((routes) => chainsOf(routes, named));
}

/** `forward_auth`: sends an authorization request, and continues after 2xx. */
export function isCheck({ kind, view }: Step): boolean {
  return (
    kind === 'reverse_proxy' &&
    view.at('rewrite', 'uri') !== undefined &&
    view.list('handle_response').some(isForAllowed)
  );
}

/** Whether a `handle_response` is only for 2xx, because a denial has another status. */
function isForAllowed(response: View): boolean {
  const statuses = response.get('match')?.list('status_code') ?? [];
  return (
    statuses.length > 0 &&
    statuses.every(({ number = 0 }) => number === 2 || (number >= 200 && number <= 299))
  );
}

export const isForwarding = (step: Step): boolean => step.kind === 'reverse_proxy' && !isCheck(step);

/** Handlers that continue with the next one, or end a request without forwarding it. */
const KNOWN =
  /^(?:acme_server|authentication|copy_response|copy_response_headers|encode|error|file_server|headers|intercept|log_append|map|metrics|push|request_body|reverse_proxy|rewrite|static_response|templates|timeouts|tracing|vars)$/;

/** Whether the handler is unknown here, such as a plugin. */
export const isUnknown = ({ kind }: Step): boolean => !KNOWN.test(kind);

/** Whether no later handler gets a request. */
function isEnding(kind: string, view: View): boolean {
  if (kind === 'file_server') return view.get('pass_thru')?.flag !== true;
  // Caddy continues after 103 (Early Hints), which a placeholder may contain.
  if (kind === 'static_response') return !/103|\{/.test(view.get('status_code')?.text ?? '');
  return /^(?:copy_response|error|metrics)$/.test(kind);
}

/** `named_routes` of a server, and the names on the way to this route. */
interface NamedRoutes {
  readonly routes: View | undefined;
  readonly within: readonly string[];
}

interface Open {
  readonly steps: Chain;
  /** Groups from which a route was already taken; their other routes are skipped. */
  readonly groups: ReadonlySet<string>;
}

/** More than any real configuration has. The rest is not read and counts as an unknown handler. */
const MAX_CHAINS = 2_000;

function chainsOf(routes: readonly View[], named: NamedRoutes): readonly Chain[] {
  const ended: Chain[] = [];
  let open: readonly Open[] = [{ steps: [], groups: new Set() }];
  for (const route of routes) {
    const next: Open[] = [];
    const inner = handlersOf(route.list('handle'), named);
    if (ended.length + open.length * inner.length > MAX_CHAINS) return [[stepOf('', route)]];
    for (const one of open) {
      const { isPassedOver, taken } = take(route, inner, one);
      for (const steps of taken) {
        const isOver = route.get('terminal')?.flag === true || hasEnd(steps);
        if (isOver) ended.push(steps);
        else next.push({ steps, groups: withGroup(one.groups, route) });
      }
      if (isPassedOver) next.push(one);
    }
    open = next;
  }
  return [...ended, ...open.map(({ steps }) => steps)];
}

function hasEnd(chain: Chain): boolean {
  return chain.some(({ condition, isEnd }) => condition === undefined && isEnd);
}

interface Taken {
  readonly taken: readonly Chain[];
  /** Whether a request may skip the route. */
  readonly isPassedOver: boolean;
}

function take(route: View, inner: readonly Chain[], { groups, steps }: Open): Taken {
  const group = route.get('group')?.text;
  if (group !== undefined && groups.has(group)) return { taken: [], isPassedOver: true };
  const condition = route.get('match');
  const decides =
    group !== undefined ||
    route.get('terminal')?.flag === true ||
    inner.some((one) => one.some(isForwarding));
  if (condition === undefined || decides) {
    return { taken: inner.map((chain) => [...steps, ...chain]), isPassedOver: condition !== undefined };
  }
  // Inserts the steps for requests that match, such as `respond @other 421`, among those of all other requests.
  const marked = inner.map((chain) => [...steps, ...chain.map((step) => ({ ...step, condition }))]);
  return { taken: marked, isPassedOver: inner.some((chain) => chain.some(isCheck)) };
}

function withGroup(groups: ReadonlySet<string>, route: View): ReadonlySet<string> {
  const group = route.get('group')?.text;
  return group === undefined ? groups : new Set([...groups, group]);
}

function handlersOf(handlers: readonly View[], named: NamedRoutes): readonly Chain[] {
  let chains: readonly Chain[] = [[]];
  for (const view of handlers) {
    const inner = handlerOf(view, named);
    if (chains.length * inner.length > MAX_CHAINS) return [[stepOf('', view)]];
    chains = chains.flatMap((chain) => (hasEnd(chain) ? [chain] : inner.map((more) => [...chain, ...more])));
  }
  return chains;
}

function handlerOf(view: View, named: NamedRoutes): readonly Chain[] {
  const kind = view.get('handler')?.text ?? '';
  if (kind === 'subroute') {
    const errors = view.get('errors');
    const onError = errors === undefined ? [] : chainsOf(errors.list('routes'), named);
    return [...chainsOf(view.list('routes'), named), ...onError];
  }
  if (kind === 'invoke') return invoked(view, named);
  if (kind === 'reverse_proxy') return proxied(view, named);
  if (kind === 'intercept') {
    const onAnswer = view.list('handle_response').flatMap((one) => chainsOf(one.list('routes'), named));
    return [[{ ...stepOf(kind, view), onAnswer }]];
  }
  return [[stepOf(kind, view)]];
}

function stepOf(kind: string, view: View): Step {
  return { kind, view, condition: undefined, isEnd: isEnding(kind, view), onAnswer: [] };
}

/** A named route that does not exist, or that invokes itself, counts as an unknown handler. */
function invoked(view: View, { routes, within }: NamedRoutes): readonly Chain[] {
  const name = view.get('name')?.text ?? '';
  const route = within.includes(name) ? undefined : routes?.named(name);
  return route === undefined
    ? [[stepOf('', view)]]
    : chainsOf([route], { routes, within: [...within, name] });
}

/**
 * Either the caller gets the answer, or the routes of a `handle_response` run and then the next handler. Routes for a
 * denial count as unchecked, because the check did not allow the request.
 */
function proxied(view: View, named: NamedRoutes): readonly Chain[] {
  const step = stepOf('reverse_proxy', view);
  const responses = view.list('handle_response').filter((one) => one.get('status_code') === undefined);
  const more = responses.flatMap((one) => {
    const before = isCheck(step) && !isForAllowed(one) ? [] : [step];
    return chainsOf(one.list('routes'), named).map((chain) => [...before, ...chain]);
  });
  return [[{ ...step, isEnd: true }], ...more];
}
