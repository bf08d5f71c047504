/**
 * Compares two contents of a site entry by entry, for people who review a change. It ignores members that only place a
 * document in its chain (`revision`, `previous_head`, `issued_at`) and the order of entries. An absent member equals
 * its default. Keys appear only as thumbprints.
 * Source: docs/design/bundle.md "Content".
 */

import { DEFAULT_SKEW_SECONDS } from '../../protocol/limits.ts';
import { thumbprintOf } from '../../protocol/public-key.ts';
import { tokenKeyThumbprint } from '../../protocol/token-key.ts';
import { accessOf } from '../compile/compile-routes.ts';
import { bundleError, showValue } from '../format/bundle-error.ts';
import { DEFAULT_PASSPORT_TTL_SECONDS } from '../format/bundle-limits.ts';
import type {
  AllowedSourceContent,
  BlockedCallerContent,
  ClientContent,
  DerivedKeyContent,
  IssuerContent,
  IssuerKeyContent,
  OAuthIssuerContent,
  RouteContent,
} from '../format/schema.ts';
import type { SiteContent } from './site-content.ts';

const DIFFERENCE_KINDS = [
  'setting',
  'trust_anchor_source',
  'issuer',
  'issuer_key',
  'oauth_issuer',
  'oauth_issuer_key',
  'blocked',
  'client',
  'grant',
  'derived_key',
  'route',
  'route_source',
] as const;
type DifferenceKind = (typeof DIFFERENCE_KINDS)[number];

/** An entry that only one side has, or that differs. */
export interface Difference {
  readonly change: 'added' | 'removed' | 'changed';
  readonly kind: DifferenceKind;
  /** The entry's name; for an entry within another one, both names, outer first. */
  readonly name: readonly string[];
  /** The members that differ. For an added or removed entry all of them, with `null` on the other side. */
  readonly members: readonly MemberDifference[];
}

export interface MemberDifference {
  readonly member: string;
  readonly before: MemberValue;
  readonly after: MemberValue;
}

/** JSON text of a value; `null` when there is none. */
type MemberValue = string | null;

/** An entry with its members as JSON texts, which are compared and shown. */
interface Entry {
  readonly name: readonly string[];
  readonly members: { readonly [member: string]: MemberValue };
}

export interface DiffOptions {
  /** False when one side has no expiry yet, because its signer sets it. Default true. */
  readonly comparesExpiry?: boolean;
}

/**
 * Returns the differences in the order of {@link DIFFERENCE_KINDS}, then by name. Empty when both are equivalent.
 * @throws BundleError `duplicate` for content with two entries of one name
 */
export function diffContents(
  before: SiteContent,
  after: SiteContent,
  options: DiffOptions = {},
): readonly Difference[] {
  const [old, now] = [entriesOf(before, options), entriesOf(after, options)];
  return DIFFERENCE_KINDS.flatMap((kind) => diffEntries(kind, old[kind], now[kind]));
}

function diffEntries(
  kind: DifferenceKind,
  before: ReadonlyMap<string, Entry>,
  after: ReadonlyMap<string, Entry>,
): readonly Difference[] {
  const found: Difference[] = [];
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort();
  for (const id of ids) {
    const [old, now] = [before.get(id), after.get(id)];
    const members = diffMembers(old?.members, now?.members);
    const name = (now ?? old)?.name ?? [];
    if (old === undefined) found.push({ change: 'added', kind, name, members });
    else if (now === undefined) found.push({ change: 'removed', kind, name, members });
    else if (members.length > 0) found.push({ change: 'changed', kind, name, members });
  }
  return found;
}

function diffMembers(before: Entry['members'] = {}, after: Entry['members'] = {}): MemberDifference[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names]
    .map((member) => ({ member, before: before[member] ?? null, after: after[member] ?? null }))
    .filter((difference) => difference.before !== difference.after);
}

type Entries = { readonly [K in DifferenceKind]: ReadonlyMap<string, Entry> };

function entriesOf(content: SiteContent, options: DiffOptions): Entries {
  const { bundle, clients, derivedKeys } = content;
  const { blocked = [], issuers = [], oauth_issuers: servers = [], route_sources: sources, routes } = bundle;
  const anchors = bundle.trust_anchor_sources ?? [];
  return {
    setting: byName(settingsOf(content, options)),
    trust_anchor_source: byName(
      anchors.map(({ id, revision, fingerprint }) => entry([id], { revision, fingerprint })),
    ),
    issuer: byName(issuers.map(issuerEntry)),
    issuer_key: byName(issuers.flatMap(({ issuer, keys }) => keys.map((key) => issuerKeyEntry(issuer, key)))),
    oauth_issuer: byName(servers.map(oauthIssuerEntry)),
    oauth_issuer_key: byName(servers.flatMap(oauthKeyEntries)),
    blocked: byName(blocked.map(blockedEntry)),
    client: byName([...clients.values()].map(clientEntry)),
    grant: byName(
      [...clients.values()].flatMap(({ client_id: clientId, grants }) =>
        grants.map(({ resource, access }) => entry([clientId, resource], { access })),
      ),
    ),
    derived_key: byName([...derivedKeys.values()].map(derivedKeyEntry)),
    route: byName(routes.map(routeEntry)),
    route_source: byName(
      sources.flatMap(({ route_id: routeId, allowed_sources: allowed }) =>
        allowed.map((source) => sourceEntry(routeId, source)),
      ),
    ),
  };
}

/** @throws BundleError `duplicate`, because one of the two would not be compared */
function byName(entries: readonly Entry[]): ReadonlyMap<string, Entry> {
  const map = new Map<string, Entry>();
  for (const one of entries) {
    const id = JSON.stringify(one.name);
    if (map.has(id)) {
      throw bundleError(
        'duplicate',
        'bundle',
        '',
        `two entries with the name ${showValue(one.name.join(' '))}`,
      );
    }
    map.set(id, one);
  }
  return map;
}

function entry(name: readonly string[], members: { readonly [member: string]: unknown }): Entry {
  const texts = Object.entries(members).map(([member, value]) => [member, asText(value)] as const);
  return { name, members: Object.fromEntries(texts) };
}

/** JSON with a canonical order of mappings and of lists that are sets. */
function asText(value: unknown): MemberValue {
  return value === undefined ? null : JSON.stringify(ordered(value));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered).sort(byText);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, item]) => [name, ordered(item)] as const)
      .sort(([a], [b]) => byText(a, b)),
  );
}

function byText(a: unknown, b: unknown): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function settingsOf({ bundle }: SiteContent, { comparesExpiry = true }: DiffOptions): readonly Entry[] {
  const settings = {
    auth_site: bundle.auth_site,
    ...(comparesExpiry ? { expires_at: bundle.expires_at } : {}),
    skew_seconds: bundle.skew_seconds ?? DEFAULT_SKEW_SECONDS,
    single_verifier: bundle.single_verifier ?? false,
    ...(bundle.unmatched === undefined
      ? {}
      : { unmatched: bundle.unmatched, unmatched_until: bundle.unmatched_until }),
  };
  return [
    ...Object.entries(settings).map(([name, value]) => entry([name], { value })),
    ...bundle.origins.map((origin) => entry(['origins', origin], {})),
  ];
}

function issuerEntry(content: IssuerContent): Entry {
  const { issuer, keys: _, max_passport_ttl_seconds: ttl, trust_domain: trustDomain, ...rest } = content;
  const max_passport_ttl_seconds = ttl ?? DEFAULT_PASSPORT_TTL_SECONDS;
  return entry([issuer, trustDomain], { ...rest, max_passport_ttl_seconds });
}

function issuerKeyEntry(issuer: string, { jwk, kid, ...rest }: IssuerKeyContent): Entry {
  return entry([issuer, kid], { ...rest, thumbprint: thumbprintOf(jwk) });
}

function oauthIssuerEntry({ issuer, keys: _, ...rest }: OAuthIssuerContent): Entry {
  const defaults = {
    token_types: ['at+jwt'],
    subject_claim: 'sub',
    context_claims: [],
    max_token_ttl_seconds: DEFAULT_PASSPORT_TTL_SECONDS,
  };
  return entry([issuer], { ...defaults, ...rest });
}

function oauthKeyEntries({ issuer, keys }: OAuthIssuerContent): readonly Entry[] {
  return keys.map(({ alg, jwk, kid }) => entry([issuer, kid], { alg, thumbprint: tokenKeyThumbprint(jwk) }));
}

/** All its members form its name. */
function blockedEntry({ holder_thumbprint: holder, issuer, subject }: BlockedCallerContent): Entry {
  const caller = subject === undefined ? `holder_thumbprint ${holder ?? ''}` : `subject ${subject}`;
  return entry([`issuer ${issuer}`, caller], {});
}

function clientEntry({ client_id: clientId, context, grants: _, ...rest }: ClientContent): Entry {
  return entry([clientId], { ...rest, context: context ?? {} });
}

function derivedKeyEntry({ jwk, key_id: keyId, provenance, ...rest }: DerivedKeyContent): Entry {
  return entry([keyId], { ...rest, provenance: provenance ?? {}, thumbprint: thumbprintOf(jwk) });
}

function routeEntry({ route_id: routeId, ...route }: RouteContent): Entry {
  const defaults = {
    resource: routeId,
    access: accessOf({ route_id: routeId, ...route }),
    signed_headers: [],
    body: 'bound',
    required_provenance: {},
    required_context: {},
    forward_authorization: false,
  };
  return entry([routeId], { ...defaults, ...route });
}

/** All its members form its name, so it is never changed, only added and removed. */
function sourceEntry(routeId: string, source: AllowedSourceContent): Entry {
  const { issuer, required_key_binding: binding, subject_exact: exact, subject_prefix: prefix } = source;
  const subject = exact === undefined ? `subject_prefix ${prefix ?? ''}` : `subject_exact ${exact}`;
  return entry([routeId, `issuer ${issuer}`, `trust_domain ${source.trust_domain}`, subject, binding], {});
}
