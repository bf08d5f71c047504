/**
 * In which order Envoy Gateway puts HTTP filters, and what EnvoyProxy's `filterOrder` makes of it.
 * Source: Envoy Gateway 1.9, internal/xds/translator/httpfilters.go.
 */
import type { Gateway } from './gateway.ts';
import { extAuths, ofKind } from './settings.ts';
import type { View } from './view.ts';

const CHECK = 'ext_authz';

/** Without a word of an operator's. */
const DEFAULT_ORDER: readonly string[] = [
  'custom_response',
  'health_check',
  'fault',
  'cors',
  'csrf',
  'header_mutation',
  CHECK,
  'api_key_auth',
  'basic_auth',
  'oauth2',
  'jwt_authn',
  'stateful_session',
  'buffer',
  'lua',
  'ext_proc',
  'wasm',
  'dynamic_modules',
  'geoip',
  'rbac',
  'local_ratelimit',
  'ratelimit',
  'bandwidth_limit',
  'grpc_web',
  'grpc_stats',
  'credential_injector',
  'compressor',
  'dynamic_forward_proxy',
];

/** One of `filterOrder`: a filter, and the one that it goes before or after. */
interface Move {
  readonly view: View;
  readonly kind: string;
  readonly neighbour: string;
  readonly isAfter: boolean;
}

function movesOf(filterOrder: readonly View[]): readonly Move[] {
  return filterOrder.map((view) => ({
    view,
    kind: kindIn(view.get('name')),
    neighbour: kindIn(view.get('before') ?? view.get('after')),
    isAfter: view.get('before') === undefined,
  }));
}

function kindIn(name: View | undefined): string {
  return name?.text?.replace(/^envoy\.filters\.http\./, '') ?? '';
}

function moved(order: readonly string[], { isAfter, kind, neighbour }: Move): readonly string[] {
  if (kind === neighbour || !order.includes(kind) || !order.includes(neighbour)) return order;
  const others = order.filter((one) => one !== kind);
  const at = others.indexOf(neighbour) + (isAfter ? 1 : 0);
  return [...others.slice(0, at), kind, ...others.slice(at)];
}

function behindCheck(order: readonly string[]): readonly string[] {
  return order.slice(order.indexOf(CHECK) + 1);
}

/**
 * Whether a filter may run behind the check in one of the file's gateways. Entries of `filterOrder` move what a listener has, and count for
 * nothing where it has no such neighbour: so this one and the check are looked at by themselves, with each other one, with all that the
 * file's policies make, and with everything.
 */
function mayBeBehindCheck(
  kind: string,
  made: readonly string[],
  orders: readonly (readonly Move[])[],
): boolean {
  const pair = [CHECK, kind];
  const present = [pair, ...DEFAULT_ORDER.map((one) => [...pair, one]), [...pair, ...made], DEFAULT_ORDER];
  const starts = present.map((kinds) => DEFAULT_ORDER.filter((one) => kinds.includes(one)));
  return orders.some((moves) =>
    starts.some((start) => behindCheck(moves.reduce(moved, start)).includes(kind)),
  );
}

/** Entries of `filterOrder` that put the check in front of such a filter, or such a filter behind the check, where it was not. */
export function movesBehindCheck(gateway: Gateway, isHarmless: (kind: string) => boolean): readonly View[] {
  return ofKind(gateway, 'EnvoyProxy').flatMap(({ spec }) => {
    let order = DEFAULT_ORDER;
    return movesOf(spec.list('filter_order')).flatMap((move) => {
      const before = behindCheck(order);
      order = moved(order, move);
      const added = behindCheck(order).filter((kind) => !before.includes(kind) && !isHarmless(kind));
      return added.length === 0 ? [] : [move.view];
    });
  });
}

/** Filters that policies of Envoy Gateway put into its chain, by the members that do. */
const POLICY_FILTERS: { readonly [kind: string]: { readonly [member: string]: string } } = {
  EnvoyExtensionPolicy: {
    dynamic_module: 'dynamic_modules',
    ext_proc: 'ext_proc',
    lua: 'lua',
    wasm: 'wasm',
  },
  SecurityPolicy: {
    api_key_auth: 'api_key_auth',
    basic_auth: 'basic_auth',
    jwt: 'jwt_authn',
    oidc: 'oauth2',
  },
};

/** Those of policies that come behind the check, where they are said. */
export function filtersOfPolicies(gateway: Gateway): readonly View[] {
  const said = Object.entries(POLICY_FILTERS).flatMap(([policy, members]) => {
    if (policy === 'SecurityPolicy' && extAuths(gateway).length === 0) return [];
    return ofKind(gateway, policy).flatMap(({ spec }) =>
      Object.entries(members).flatMap(([member, filter]) => {
        const view = spec.get(member);
        return view === undefined ? [] : [{ view, filter }];
      }),
    );
  });
  const made = [...new Set(said.map(({ filter }) => filter))];
  const proxies = ofKind(gateway, 'EnvoyProxy').map(({ spec }) => movesOf(spec.list('filter_order')));
  const orders = proxies.length === 0 ? [[]] : proxies;
  const behind = new Set(made.filter((kind) => mayBeBehindCheck(kind, made, orders)));
  return said.filter(({ filter }) => behind.has(filter)).map(({ view }) => view);
}
