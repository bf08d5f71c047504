/** Reads HTTP filters by the type of their settings, also within a matcher or a TypedStruct. */
import type { HttpFilter, Override } from './gateway.ts';
import { everyMapping, type View } from './view.ts';

/** A message with its type. */
export interface Typed {
  /** Full name, such as `envoy.extensions.filters.http.lua.v3.Lua`. */
  readonly type: string;
  readonly settings: View;
}

/** Reads an Any in protobuf's JSON form. */
export function typed(message: View | undefined): Typed | undefined {
  const type = typeName(message?.named('@type'));
  if (message === undefined || type === undefined) return undefined;
  if (!/\.TypedStruct$/.test(type)) return { type, settings: message };
  const inner = typeName(message.get('type_url'));
  return inner === undefined ? undefined : { type: inner, settings: message.get('value') ?? message };
}

function typeName(url: View | undefined): string | undefined {
  return url?.text?.replace(/^.*\//, '');
}

/** `ext_authz` of `envoy.extensions.filters.http.ext_authz.v3.ExtAuthz`. */
function kindOfType(type: string): string {
  return /\bfilters?\.http\.([a-z0-9_]+)\./.exec(type)?.[1] ?? type;
}

/** Without settings Envoy finds the filter by its name. */
function kindOfName(name: string): string {
  return name.replace(/^envoy\.(?:filters\.http\.)?/, '');
}

const WRAPPER = /\.(?:ExtensionWithMatcher|Composite)$/;

/** @param discovered filters that are configured by name elsewhere (ECDS) */
export function readHttpFilter(entry: View, discovered: readonly View[]): HttpFilter {
  const name = entry.get('name')?.text ?? '';
  const named = discovered.findLast((filter) => filter.get('name')?.text === name);
  const config =
    entry.get('typed_config') ?? named?.get('typed_config') ?? entry.at('config_discovery', 'default_config');
  const message = typed(config);
  if (message === undefined) {
    return { entry, name, kind: kindOfName(name), settings: config, condition: undefined };
  }
  if (WRAPPER.test(message.type)) return readWrapped(entry, name, message);
  const kind = kindOfType(message.type);
  return { entry, name, kind, settings: message.settings, condition: undefined };
}

/** Of several filters from which a matcher selects, the check has precedence. */
function readWrapped(entry: View, name: string, { settings, type }: Typed): HttpFilter {
  const inner = everyMapping([settings])
    .flatMap((view) => typed(view) ?? [])
    .map((message) => ({ ...message, kind: kindOfType(message.type) }))
    .filter(({ type: innerType, kind }) => kind !== innerType && !WRAPPER.test(innerType));
  const chosen =
    inner.find((message) => isCheck(message)) ?? inner.find(({ kind }) => kind !== 'composite') ?? inner[0];
  const condition = settings.get('xds_matcher') ?? settings.get('matcher') ?? settings;
  return {
    entry,
    name,
    kind: chosen?.kind ?? kindOfType(type),
    settings: chosen?.settings ?? settings,
    condition,
  };
}

function isCheck({ type }: Typed): boolean {
  return /\.ext_authz\.v\w+\.ExtAuthz$/.test(type);
}

export function isManager({ type }: Typed): boolean {
  return /\.HttpConnectionManager$/.test(type);
}

/**
 * Types of network filters that forward by themselves. Others (mongo_proxy, zookeeper_proxy, …) only observe, before
 * one of these.
 */
export const PROXY =
  /\.(?:TcpProxy|GenericProxy|ThriftProxy|DubboProxy|RedisProxy|RocketmqProxy|SipProxy|KafkaMesh|UdpProxyConfig)$/;

export function readOverrides(parts: readonly View[]): readonly Override[] {
  return parts.flatMap((owner) =>
    (owner.get('typed_per_filter_config')?.members() ?? []).map(({ name, view }) =>
      readOverride(owner, name, view),
    ),
  );
}

function readOverride(owner: View, name: string, entry: View): Override {
  const outer = typed(entry);
  const isFilterConfig = outer !== undefined && /\.route\.v\w+\.FilterConfig$/.test(outer.type);
  const inner = isFilterConfig ? typed(outer.settings.get('config')) : outer;
  return {
    owner,
    name,
    entry,
    kind: inner === undefined ? undefined : kindOfType(inner.type),
    settings: inner?.settings ?? entry,
    isDisabled: isFilterConfig && mayBe(outer.settings.get('disabled')),
  };
}

/** Present, and not known to be false. */
export function mayBe(setting: View | undefined): boolean {
  return setting !== undefined && setting.flag !== false;
}
