/** What a file configures, in the form that the rules read. */
import type { Place } from './source-file.ts';
import type { View } from './view.ts';

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

/** An HTTP connection manager. */
export interface Chain {
  readonly manager: View;
  readonly filters: readonly HttpFilter[];
  /** Route configurations of it that the file holds. */
  readonly routes: readonly View[];
  /** Names routes that the file does not hold. */
  readonly unseenRoutes: View | undefined;
}

export interface Listener {
  readonly view: View;
  readonly chains: readonly Chain[];
  /** Network filters that forward bytes which no HTTP filter sees. */
  readonly proxies: readonly View[];
  /** Takes only what the workload beside it sends. */
  readonly isOutbound: boolean;
}

/** One entry of `typed_per_filter_config`. */
export interface Override {
  /** The route, virtual host or other part that holds it. */
  readonly owner: View;
  /** Of the filter. */
  readonly name: string;
  readonly entry: View;
  /** As in {@link HttpFilter}; undefined for a `FilterConfig` without settings. */
  readonly kind: string | undefined;
  readonly settings: View;
  /** By `FilterConfig`, for any filter. */
  readonly isDisabled: boolean;
}

/** An object of Kubernetes. */
export interface Resource {
  readonly kind: string;
  readonly name: string;
  /** Undefined where the manifest leaves it to `kubectl`. */
  readonly namespace: string | undefined;
  readonly view: View;
  readonly spec: View;
}

/** What a bootstrap, a `config_dump` or files of resources hold. */
export interface EnvoyConfiguration {
  readonly listeners: readonly Listener[];
  /** Connection managers in front of an API. */
  readonly managers: readonly View[];
  /** Settings of ext_authz filters. */
  readonly checks: readonly View[];
  /** Every mapping within route configurations. */
  readonly routeParts: readonly View[];
  readonly overrides: readonly Override[];
  readonly clusters: readonly View[];
  /** Endpoints that are configured apart from their clusters. */
  readonly endpoints: readonly View[];
  readonly admins: readonly View[];
  /** References to configuration that the file does not hold. */
  readonly unseen: readonly View[];
}

/** What EnvoyFilter, EnvoyPatchPolicy and `bootstrap` of EnvoyProxy change in generated configuration. */
export interface Patches {
  /** Those that may change the check, its cluster or its order. */
  readonly unknown: readonly View[];
  /** Settings, such as `encode_raw_headers`, that the others give the check. */
  readonly checkSettings: ReadonlySet<string>;
}

export interface Gateway extends EnvoyConfiguration {
  /** The parts of the file that configure a gateway. */
  readonly documents: readonly View[];
  readonly resources: readonly Resource[];
  /** Istio's mesh configurations. */
  readonly meshes: readonly View[];
  readonly patches: Patches;
}

export interface Finding {
  readonly rule: string;
  readonly severity: 'error' | 'warning';
  readonly place: Place;
  readonly effect: string;
  readonly fix: string;
}

/** @typeParam C what it reads: {@link Gateway} for Envoy */
export interface Rule<C = Gateway> {
  /** Stable, kebab case. */
  readonly id: string;
  /** Error: requests bypass the check, or the API trusts what was not checked. Warning: the check is weaker, or denies valid requests. */
  readonly severity: Finding['severity'];
  /** What the setting does, in one line. */
  readonly effect: string;
  /** What to write instead, in one line. */
  readonly fix: string;
  /** Each bad setting, or for a missing setting the part that should hold it. */
  find(configuration: C): readonly { readonly place: Place }[];
}
