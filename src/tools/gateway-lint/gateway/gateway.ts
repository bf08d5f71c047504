/** The configuration of a file in the form that the rules read. */
import type { Place } from './source-file.ts';
import type { View } from './view.ts';

/** One of the filters of an HTTP connection manager. */
export interface HttpFilter {
  /** Its entry in `http_filters`. */
  readonly entry: View;
  readonly name: string;
  /** Kind such as `ext_authz`, from the type of its settings; for types outside of Envoy the whole type. */
  readonly kind: string;
  readonly settings: View | undefined;
  /** Condition under which it runs: a matcher around it, or a list from which it is selected. */
  readonly condition: View | undefined;
}

/** An HTTP connection manager. */
export interface Chain {
  readonly manager: View;
  readonly filters: readonly HttpFilter[];
  /** Its route configurations in the file. */
  readonly routes: readonly View[];
  /** The reference to routes that are not in the file. */
  readonly unseenRoutes: View | undefined;
}

export interface Listener {
  readonly view: View;
  readonly chains: readonly Chain[];
  /** Network filters that forward bytes which no HTTP filter sees. */
  readonly proxies: readonly View[];
  /** Whether it accepts only requests of the workload beside it. */
  readonly isOutbound: boolean;
}

/** One entry of `typed_per_filter_config`. */
export interface Override {
  /** The route, virtual host or other part that holds it. */
  readonly owner: View;
  /** Name of the filter. */
  readonly name: string;
  readonly entry: View;
  /** As in {@link HttpFilter}; undefined for a `FilterConfig` without settings. */
  readonly kind: string | undefined;
  readonly settings: View;
  /** Whether `FilterConfig` disables the filter. */
  readonly isDisabled: boolean;
}

/** An object of Kubernetes. */
export interface Resource {
  readonly kind: string;
  readonly name: string;
  /** Undefined if the manifest leaves it to `kubectl`. */
  readonly namespace: string | undefined;
  readonly view: View;
  readonly spec: View;
}

/** Content of a bootstrap, a `config_dump` or files of resources. */
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
  /** References to configuration that is not in the file. */
  readonly unseen: readonly View[];
}

/** Changes that EnvoyFilter, EnvoyPatchPolicy and `bootstrap` of EnvoyProxy make to generated configuration. */
export interface Patches {
  /** Changes that may affect the check, its cluster or its order. */
  readonly unknown: readonly View[];
  /** Settings, such as `encode_raw_headers`, that the other changes give the check. */
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

/** @typeParam C the configuration that it reads: {@link Gateway} for Envoy */
export interface Rule<C = Gateway> {
  /** Stable, kebab case. */
  readonly id: string;
  /**
   * Error: requests bypass the check, or the API trusts unchecked input. Warning: the check is weaker, or denies valid
   * requests.
   */
  readonly severity: Finding['severity'];
  /** Effect of the setting, in one line. */
  readonly effect: string;
  /** Correct setting, in one line. */
  readonly fix: string;
  /** Each bad setting, or for a missing setting the part that should contain it. */
  find(configuration: C): readonly { readonly place: Place }[];
}
