/**
 * Whether Envoy Gateway's filters come in front of the check. By default it asks early. `filterOrder` of EnvoyProxy can move the check behind
 * one filter after the other, as `envoy/` does, or a filter in front of the check. Any other order is reported. Source: Envoy Gateway 1.9, internal/xds/translator/httpfilters.go.
 */
import type { Gateway } from './gateway.ts';
import { extAuths, specsOf } from './resources.ts';
import type { View } from './view.ts';

/** Filters behind the check that may change a request, in Envoy Gateway's order. */
const BEHIND_CHECK: readonly string[] = [
  'api_key_auth',
  'basic_auth',
  'oauth2',
  'jwt_authn',
  'stateful_session',
  'lua',
  'ext_proc',
  'wasm',
  'dynamic_modules',
];

/** Members of policies that put these into the chain. */
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

/**
 * Members of policies whose filters no entry of `filterOrder` puts in front of the check. An entry counts for nothing where its neighbour is
 * absent, so each filter needs its own.
 */
export function policyFiltersBehindCheck(gateway: Gateway): readonly View[] {
  const orders = specsOf(gateway, 'EnvoyProxy').map((spec) => spec.list('filter_order').map(filterInFront));
  const isInFront = (filter: string) => orders.length > 0 && orders.every((order) => order.includes(filter));
  return Object.entries(POLICY_FILTERS).flatMap(([kind, members]) =>
    kind === 'SecurityPolicy' && extAuths(gateway).length === 0
      ? []
      : specsOf(gateway, kind).flatMap((spec) =>
          Object.entries(members).flatMap(([member, filter]) =>
            isInFront(filter) ? [] : (spec.get(member) ?? []),
          ),
        ),
  );
}

/** Entries that may put a filter behind the check. Those that move the check must move it further back, one after the other. */
export function unknownOrders(gateway: Gateway, isHarmless: (kind: string) => boolean): readonly View[] {
  return specsOf(gateway, 'EnvoyProxy').flatMap((spec) => {
    let position = -1;
    return spec.list('filter_order').filter((entry) => {
      const kind = kindIn(entry.get('name'));
      const filter = filterInFront(entry);
      if (kind !== CHECK) return filter === undefined && !isHarmless(kind);
      const before = position;
      position = Math.max(before, BEHIND_CHECK.indexOf(filter ?? ''));
      return position === before;
    });
  });
}

const CHECK = 'ext_authz';

/** The filter that an entry puts in front of the check, if any. */
function filterInFront(entry: View): string | undefined {
  const [name, before, after] = ['name', 'before', 'after'].map((member) => kindIn(entry.get(member)));
  if (before === CHECK) return name;
  return name === CHECK && before === '' ? after : undefined;
}

function kindIn(name: View | undefined): string {
  return name?.text?.replace(/^envoy\.filters\.http\./, '') ?? '';
}
