/**
 * Patches of configuration that Istio or Envoy Gateway generates. The effect of a patch on configuration elsewhere is
 * unknown, so patches are not applied here. The patches in `envoy/` are recognized by their form; any other patch is
 * reported.
 */

import type { Patches, Resource } from './gateway.ts';
import { isSingleHosts } from './gateway-queries.ts';
import { requiresDecision } from './rbac.ts';
import { typed } from './read-filters.ts';
import { snakeCase, type View } from './view.ts';

/** One change, in a form for both kinds of patches. */
interface Change {
  /** The place to report. */
  readonly place: View;
  /** Target and operation of the change, for {@link KNOWN_CHANGES}. */
  readonly target: string;
  readonly value: View | undefined;
}

export function readPatches(resources: readonly Resource[]): Patches {
  const unknown: View[] = resources.flatMap(({ kind, spec }) =>
    kind === 'EnvoyProxy' ? (spec.get('bootstrap') ?? []) : [],
  );
  const checkSettings = new Set<string>();
  for (const change of resources.flatMap(changesOf)) {
    const known = KNOWN_CHANGES.find(({ target }) => target.test(change.target));
    const below = known?.target.exec(change.target)?.[1];
    const settings = known?.isKnown(change.value, below === undefined ? '' : pathOf(below));
    if (settings === undefined) unknown.push(change.place);
    for (const setting of settings ?? []) checkSettings.add(setting);
  }
  return { unknown, checkSettings };
}

function changesOf({ kind, spec }: Resource): readonly Change[] {
  if (kind === 'EnvoyFilter') return changesIn(spec, 'config_patches', istioChange);
  return kind === 'EnvoyPatchPolicy' ? changesIn(spec, 'json_patches', jsonChange) : [];
}

/** A list that cannot be read, such as that of a template, counts as one unknown change. */
function changesIn(spec: View, list: string, changeIn: (entry: View) => Change): readonly Change[] {
  const entries = spec.list(list);
  if (entries.length > 0) return entries.map(changeIn);
  return [{ place: spec.get(list) ?? spec, target: '', value: undefined }];
}

/** Describes an Istio change, such as `HTTP_FILTER MERGE envoy.filters.http.ext_authz`. */
function istioChange(entry: View): Change {
  const operation = entry.at('patch', 'operation');
  const filter = entry.at('match', 'listener', 'filter_chain', 'filter');
  const name = (filter?.get('sub_filter') ?? filter)?.get('name')?.text ?? '';
  const words = [entry.get('apply_to')?.text, operation?.text, name];
  return { place: operation ?? entry, target: words.join(' '), value: entry.at('patch', 'value') };
}

/** Describes a JSON patch, such as `Listener add $..http_filters 0`. */
function jsonChange(entry: View): Change {
  const operation = entry.get('operation');
  const [op, selector, path] = ['op', 'json_path', 'path'].map((name) => operation?.get(name));
  const type = entry.get('type')?.text?.replace(/^.*\./, '');
  const words = [type, op?.text, selector?.text, path?.text];
  return { place: op ?? entry, target: words.join(' '), value: operation?.get('value') };
}

/** Converts a JSON pointer to a path as in the tables below. */
function pathOf(pointer: string): string {
  return pointer.split('/').map(snakeCase).join('.');
}

type Accepts = (setting: View) => boolean;
type SettingTable = { readonly [path: string]: Accepts };

const on: Accepts = ({ flag }) => flag === true;
const oneOf =
  (...values: readonly (string | number)[]): Accepts =>
  (setting) =>
    setting.isOneOf(...values);
const anyValue: Accepts = () => true;

/** Settings of ext_authz that make the check stricter, and that Istio or Envoy Gateway lack. */
const CHECK_SETTINGS: SettingTable = {
  encode_raw_headers: on,
  include_peer_certificate: on,
  validate_mutations: on,
  'with_request_body.pack_as_bytes': on,
};

/** Settings of the connection manager that make it stricter, or do not concern the check. */
const MANAGER_SETTINGS: SettingTable = {
  'common_http_protocol_options.headers_with_underscores_action': oneOf('REJECT_REQUEST', 1),
  'common_http_protocol_options.idle_timeout': anyValue,
  delayed_close_timeout: anyValue,
  forward_client_cert_details: oneOf('SANITIZE', 0, 'SANITIZE_SET', 3),
  internal_address_config: isSingleHosts,
  path_with_escaped_slashes_action: oneOf('REJECT_REQUEST', 2),
  request_headers_timeout: anyValue,
  request_timeout: anyValue,
  'scheme_header_transformation.scheme_to_overwrite': oneOf('http', 'https'),
  server_name: anyValue,
  stream_idle_timeout: anyValue,
  use_remote_address: on,
};

/** Settings of clusters that change neither the called server nor the messages to it. */
const CLUSTER_SETTINGS: SettingTable = {
  circuit_breakers: anyValue,
  connect_timeout: anyValue,
  outlier_detection: anyValue,
  per_connection_buffer_limit_bytes: anyValue,
  'upstream_connection_options.tcp_keepalive': anyValue,
};

interface KnownChange {
  /** Pattern with a group for the path below the selected part. */
  readonly target: RegExp;
  /** The settings that the change gives the check; undefined for an unknown change. */
  isKnown(value: View | undefined, path: string): readonly string[] | undefined;
}

const CHECK = /'envoy\.filters\.http\.ext_authz[^']*'/.source;
const MANAGER = /'envoy\.filters\.network\.http_connection_manager'/.source;

const KNOWN_CHANGES: readonly KnownChange[] = [
  {
    target: /^NETWORK_FILTER MERGE envoy\.filters\.network\.http_connection_manager$/,
    isKnown: (value) => mergedSettings(value, MANAGER_MESSAGE, MANAGER_SETTINGS) && [],
  },
  {
    target: /^HTTP_FILTER MERGE envoy\.filters\.http\.ext_authz$/,
    isKnown: (value) => mergedSettings(value, CHECK_MESSAGE, CHECK_SETTINGS),
  },
  {
    target: new RegExp(
      `^Listener add \\$\\.\\.http_filters\\[\\?\\(@\\.name *== *${CHECK}\\)\\] /?typed_config/(\\S+)$`,
    ),
    isKnown: (value, path) => value && settingsIn(value, path, CHECK_SETTINGS),
  },
  {
    target: new RegExp(
      `^Listener add \\$\\.\\.filters\\[\\?\\(@\\.name *== *${MANAGER}\\)\\] /?typed_config/(\\S+)$`,
    ),
    isKnown: (value, path) => value && settingsIn(value, path, MANAGER_SETTINGS) && [],
  },
  {
    target: /^CLUSTER MERGE $/,
    isKnown: (value) => value && settingsIn(value, '', CLUSTER_SETTINGS) && [],
  },
  {
    // Inserted before the check.
    target:
      /^(?:HTTP_FILTER INSERT_BEFORE envoy\.filters\.http\.ext_authz|Listener add \$\.\.http_filters 0)$/,
    isKnown: (value) => (onlyRemovesHeaders(value) ? [] : undefined),
  },
  {
    // Inserted after the check.
    target:
      /^(?:HTTP_FILTER INSERT_BEFORE envoy\.filters\.http\.router|Listener add \$\.\.http_filters\[\?\(@\.name *== *'envoy\.filters\.http\.router'\)\] )$/,
    isKnown: (value) => (onlyRequiresDecision(value) ? [] : undefined),
  },
  {
    target: /^VIRTUAL_HOST MERGE $/,
    isKnown: (value) => value && settingsIn(value, '', { response_headers_to_remove: anyValue }) && [],
  },
  { target: /^RouteConfiguration add {2}\/response_headers_to_remove$/, isKnown: () => [] },
  { target: /^RouteConfiguration remove \$\.\.upgrade_configs $/, isKnown: () => [] },
];

/** Settings of a `typed_config` that Istio merges into a filter, which keeps its name. */
function mergedSettings(
  value: View | undefined,
  type: RegExp,
  table: SettingTable,
): readonly string[] | undefined {
  const message = typed(value?.get('typed_config'));
  const members = value?.members() ?? [];
  const isPlain = members.every(
    ({ name, view }) =>
      snakeCase(name) === 'typed_config' || (name === 'name' && FILTER_NAMES.test(view.text ?? '')),
  );
  if (message === undefined || !isPlain || !type.test(message.type)) return undefined;
  return settingsIn(message.settings, '', { ...table, '@type': anyValue });
}

const CHECK_MESSAGE = /\.ext_authz\.v\w+\.ExtAuthz$/;
const MANAGER_MESSAGE = /\.HttpConnectionManager$/;
const FILTER_NAMES = /^envoy\.filters\.(?:http\.ext_authz|network\.http_connection_manager)$/;

/** The paths of all settings within, when the table accepts each of them. */
function settingsIn(view: View, path: string, table: SettingTable): readonly string[] | undefined {
  const accepts = table[path];
  if (accepts !== undefined) return accepts(view) ? [path] : undefined;
  const members = view.members();
  const found = members.map(({ name, view: inner }) =>
    settingsIn(inner, [path, snakeCase(name)].filter((part) => part !== '').join('.'), table),
  );
  return members.length === 0 || found.includes(undefined)
    ? undefined
    : found.flatMap((paths) => paths ?? []);
}

/** A filter with one of our names, for which no route has settings. */
function ownFilter(value: View | undefined, type: RegExp): View | undefined {
  const message = typed(value?.get('typed_config'));
  const isOurs = /^proofgate\./.test(value?.get('name')?.text ?? '') && value?.members().length === 2;
  return isOurs && type.test(message?.type ?? '') ? message?.settings : undefined;
}

function onlyRemovesHeaders(value: View | undefined): boolean {
  const settings = ownFilter(value, /\.header_mutation\.v\w+\.HeaderMutation$/);
  const lists = settings?.get('mutations')?.members() ?? [];
  return (
    settings?.members().every(({ name }) => ['@type', 'mutations'].includes(name)) === true &&
    lists.every(({ name }) => /^request_(?:trailers_)?mutations$/.test(snakeCase(name))) &&
    lists
      .flatMap(({ view }) => view.items())
      .flatMap((mutation) => mutation.members())
      .every(({ name }) => ['remove', 'remove_on_match'].includes(snakeCase(name)))
  );
}

function onlyRequiresDecision(value: View | undefined): boolean {
  return requiresDecision(ownFilter(value, /\.filters\.http\.rbac\.v\w+\.RBAC$/));
}
