/** Caddy's configuration in JSON, as `caddy adapt` prints it, as the orders in which handlers run. Source: Caddy, "JSON Config Structure". */
import type { View } from '../view.ts';

/** One handler of a chain. */
export interface Step {
  readonly kind: string;
  readonly view: View;
  /** What its route matches; undefined where every request of the chain gets here. */
  readonly condition: View | undefined;
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
  return { servers: views, chains: views.flatMap((view) => chainsOf(view.list('routes'))) };
}

/** `forward_auth`: asks, and goes on after 2xx. */
export function isCheck({ kind, view }: Step): boolean {
  return kind === 'reverse_proxy' && view.at('rewrite', 'uri') !== undefined && answers(view).length > 0;
}

/** Routes for answers of the verifier with 2xx. */
export function answers(check: View): readonly View[] {
  return check.list('handle_response').filter((one) =>
    one
      .at('match')
      ?.list('status_code')
      .some(({ number }) => number === 2 || number === 200),
  );
}

export const isForwarding = (step: Step): boolean =>
  /^(?:reverse_proxy|php_fastcgi)$/.test(step.kind) && !isCheck(step);

/** Handlers that end a request. */
const ENDING = /^(?:reverse_proxy|php_fastcgi|static_response|file_server|error|abort|metrics|acme_server)$/;

const isEnd = (step: Step) => ENDING.test(step.kind) && !isCheck(step);

interface Open {
  readonly steps: Chain;
  /** Groups that a route was taken of: the others are passed over. */
  readonly groups: ReadonlySet<string>;
}

/** More than any configuration of people has; the rest is not read. */
const MAX_CHAINS = 2_000;

function chainsOf(routes: readonly View[]): readonly Chain[] {
  const ended: Chain[] = [];
  let open: readonly Open[] = [{ steps: [], groups: new Set() }];
  for (const route of routes) {
    const next: Open[] = [];
    for (const one of open) {
      const { isPassedOver, taken } = take(route, one);
      for (const steps of taken) {
        const isOver = route.get('terminal')?.flag === true || steps.some(isUnconditionalEnd);
        if (isOver) ended.push(steps);
        else next.push({ steps, groups: withGroup(one.groups, route) });
      }
      if (isPassedOver) next.push(one);
    }
    open = next.slice(0, MAX_CHAINS);
  }
  return [...ended, ...open.map(({ steps }) => steps)].slice(0, MAX_CHAINS);
}

function isUnconditionalEnd(step: Step): boolean {
  return step.condition === undefined && isEnd(step);
}

interface Taken {
  readonly taken: readonly Chain[];
  /** Whether a request may go past the route. */
  readonly isPassedOver: boolean;
}

function take(route: View, { groups, steps }: Open): Taken {
  const group = route.get('group')?.text;
  if (group !== undefined && groups.has(group)) return { taken: [], isPassedOver: true };
  const condition = route.get('match');
  const inner = handlersOf(route.list('handle'));
  const decides = group !== undefined || route.get('terminal')?.flag === true || inner.some(hasCheckAndApi);
  if (condition === undefined || decides) {
    return { taken: inner.map((chain) => [...steps, ...chain]), isPassedOver: condition !== undefined };
  }
  // Such as `respond @other 421`: the steps of requests that match, among those of all others.
  const marked = inner.map((chain) => [...steps, ...chain.map((step) => ({ ...step, condition }))]);
  return { taken: marked, isPassedOver: inner.some((chain) => chain.some(isCheck)) };
}

function hasCheckAndApi(chain: Chain): boolean {
  return chain.some(isForwarding);
}

function withGroup(groups: ReadonlySet<string>, route: View): ReadonlySet<string> {
  const group = route.get('group')?.text;
  return group === undefined ? groups : new Set([...groups, group]);
}

function handlersOf(handlers: readonly View[]): readonly Chain[] {
  return handlers.reduce<readonly Chain[]>(
    (chains, view) => {
      const kind = view.get('handler')?.text ?? '';
      const inner: readonly Chain[] =
        kind === 'subroute' ? chainsOf(view.list('routes')) : [[{ kind, view, condition: undefined }]];
      return chains.flatMap((chain) => inner.map((more) => [...chain, ...more])).slice(0, MAX_CHAINS);
    },
    [[]],
  );
}
