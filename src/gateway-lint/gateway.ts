/** What a file configures, as the rules look at it. */
import type { Place } from './source.ts';
import type { View } from './view.ts';

/** Settings of one message, whole or as a patch gives them: what a patch leaves out stands elsewhere. */
export interface Settings {
  readonly view: View;
  readonly isWhole: boolean;
}

/** One of the filters of an HTTP connection manager. */
export interface HttpFilter {
  /** Its entry in `http_filters`. */
  readonly entry: View;
  readonly name: string;
  /** Such as `ext_authz`, from the type of its settings; for types outside of Envoy the whole type. */
  readonly kind: string;
  readonly settings: View | undefined;
  /** What decides whether it runs: a matcher around it, or a list that it is chosen from. */
  readonly condition: View | undefined;
}

/** An HTTP connection manager that is there as a whole. */
export interface Chain {
  readonly manager: View;
  readonly filters: readonly HttpFilter[];
  /** Route configurations of it that the file holds. */
  readonly routes: readonly View[];
  /** Names routes that it does not hold. */
  readonly unseenRoutes: View | undefined;
}

export interface Listener {
  readonly view: View;
  readonly chains: readonly Chain[];
  /** Forward bytes that no HTTP filter sees. */
  readonly proxies: readonly View[];
  /** For what workloads send, not for what they are sent. */
  readonly isOutbound: boolean;
}

/** One entry of `typed_per_filter_config`. */
export interface Override {
  /** The route, virtual host or other that it is for. */
  readonly owner: View;
  /** Of the filter. */
  readonly name: string;
  readonly entry: View;
  /** As of {@link HttpFilter}; `FilterConfig` around nothing has none. */
  readonly kind: string | undefined;
  readonly settings: View;
  /** By `FilterConfig`, whatever the filter. */
  readonly isDisabled: boolean;
}

/** An object of Kubernetes. */
export interface Resource {
  readonly kind: string;
  readonly name: string;
  /** Undefined where whoever applies it says it. */
  readonly namespace: string | undefined;
  readonly view: View;
  readonly spec: View;
}

export interface Gateway {
  /** What was understood of the file. */
  readonly documents: readonly View[];
  readonly listeners: readonly Listener[];
  /** HTTP connection managers. */
  readonly managers: readonly Settings[];
  /** ExtAuthz filters. */
  readonly checks: readonly Settings[];
  /** Everything within route configurations, and what patches say of them. */
  readonly routeParts: readonly View[];
  readonly overrides: readonly Override[];
  readonly clusters: readonly View[];
  /** Of clusters that have them elsewhere. */
  readonly endpoints: readonly View[];
  readonly admins: readonly View[];
  /** Says that something is fetched from elsewhere. */
  readonly unseen: readonly View[];
  /** Filters that patches put into a chain, with the patch's word on where. */
  readonly insertedFilters: readonly { readonly filter: HttpFilter; readonly isBehindCheck: boolean }[];
  /** Filters that patches give routers and clusters, which run after all others. */
  readonly upstreamFilters: readonly View[];
  /** Patches that take the check away. */
  readonly removals: readonly View[];
  /** Patches of what others put in so that nothing passes without a decision. */
  readonly decisionRemovals: readonly View[];
  readonly resources: readonly Resource[];
  /** Objects that say where and how a gateway or verifier runs, and configure none by themselves. */
  readonly surroundings: readonly Resource[];
  /** Of Istio's mesh configurations. */
  readonly meshes: readonly View[];
}

export interface Finding {
  readonly rule: string;
  readonly severity: 'error' | 'warning';
  readonly place: Place;
  readonly effect: string;
  readonly fix: string;
}

export interface Rule {
  /** Stable, kebab case. */
  readonly id: string;
  /** Error: requests get past the check, or what the API takes for checked is not. Warning: the check is weaker, or refuses what it should not. */
  readonly severity: Finding['severity'];
  /** What the setting does, in one line. */
  readonly effect: string;
  /** What to write instead, in one line. */
  readonly fix: string;
  /** Each setting that is so, or where the missing one should stand. */
  find(gateway: Gateway): Iterable<View>;
}
