/**
 * Compiles routes and their sources to the table that finds a request's route.
 * Source: docs/design/bundle.md "Rules that a load enforces", docs/design/protocol.md "Routes, origins, paths".
 */
import { type Access, accessOfMethod } from '../../protocol/access.ts';
import { isSignableHeaderName } from '../../protocol/identifiers.ts';
import { parsePathTemplate } from '../../protocol/path-template.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import { isCanonicalSubject, isCanonicalSubjectPrefix } from '../../protocol/spiffe-id.ts';
import { type PassportHeader, passportHeaderOf } from '../../protocol/wire-names.ts';
import { type Faults, pointer, showValue } from '../format/bundle-error.ts';
import type { AllowedSourceContent, BundleContent, RouteContent } from '../format/schema.ts';
import { type Steps, withoutPause } from '../format/time-slice.ts';
import { compileUnbound } from './compile-dpop.ts';
import { checkSubject, checkSubjectPrefix } from './compile-identities.ts';
import { compileObservation } from './compile-observation.ts';
import { RouteTree } from './route-table.ts';
import type {
  FreshnessGroup,
  FreshnessRule,
  RequiredAttribute,
  Route,
  RouteTable,
  SourceRule,
} from './snapshot.ts';

/** @param siteOrigins the site's validated origins */
export function compileRoutes(
  content: BundleContent,
  siteOrigins: ReadonlySet<string>,
  faults: Faults,
): RouteTable {
  return withoutPause(compileRoutesInSteps(content, siteOrigins, faults));
}

/** As {@link compileRoutes}, pausing after each route, so that the process can do other work. */
export function* compileRoutesInSteps(
  content: BundleContent,
  siteOrigins: ReadonlySet<string>,
  faults: Faults,
): Steps<RouteTable> {
  const sources = yield* compileSources(content, faults);
  const tree = new RouteTree(siteOrigins);
  const issuedAtSeconds = parseTime(content.issued_at) ?? Number.NaN;
  const routeIds = new Set<string>();
  for (const [index, entry] of content.routes.entries()) {
    const path = pointer('routes', index);
    if (routeIds.has(entry.route_id)) {
      faults.add('duplicate', `${path}/route_id`, `${showValue(entry.route_id)} occurs twice`);
    }
    routeIds.add(entry.route_id);
    const routeSources = sources.get(entry.route_id);
    if (routeSources === undefined) {
      const text = `${showValue(entry.route_id)} has no entry in route_sources`;
      faults.add('source_set_missing', `${path}/route_id`, text);
    }
    const inputs = { issuedAtSeconds, siteOrigins, sources: routeSources ?? [] };
    addRoute(tree, entry, compileRoute(entry, inputs, path, faults), path, faults);
    yield;
  }
  for (const [index, { route_id }] of content.route_sources.entries()) {
    if (routeIds.has(route_id)) continue;
    faults.add(
      'route_unknown',
      pointer('route_sources', index, 'route_id'),
      `no route ${showValue(route_id)}`,
    );
  }
  return tree;
}

function addRoute(tree: RouteTree, entry: RouteContent, route: Route, path: string, faults: Faults): void {
  const template = parsePathTemplate(entry.path_template);
  const templatePath = `${path}/path_template`;
  if (template.kind === 'problem') {
    faults.add('template_invalid', templatePath, `${showValue(entry.path_template)}: ${template.text}`);
    return;
  }
  const conflict = tree.add(route, template.segments);
  if (conflict === undefined) return;
  const text =
    conflict.kind === 'same_request'
      ? `matches the same requests as route ${showValue(conflict.routeId)}`
      : 'another route has {name} where this one has {name*}, or the reverse';
  faults.add('route_conflict', templatePath, `${showValue(entry.path_template)}: ${text}`);
}

/** Access that a route requires a client's grant to include. */
export function accessOf(route: RouteContent): Access {
  return route.access ?? accessOfMethod(route.method);
}

interface RouteInputs {
  /** Of the bundle. */
  readonly issuedAtSeconds: number;
  readonly siteOrigins: ReadonlySet<string>;
  readonly sources: readonly SourceRule[];
}

function compileRoute(
  entry: RouteContent,
  { issuedAtSeconds, siteOrigins, sources }: RouteInputs,
  path: string,
  faults: Faults,
): Route {
  return {
    routeId: entry.route_id,
    method: entry.method,
    pathTemplate: entry.path_template,
    audience: entry.audience,
    freshness: compileFreshness(entry, path, faults),
    resource: entry.resource ?? entry.route_id,
    access: accessOf(entry),
    origins: compileRouteOrigins(entry, siteOrigins, path, faults),
    signedHeaders: compileSignedHeaders(entry, path, faults),
    body: entry.body ?? 'bound',
    upgrade: entry.upgrade,
    requiredProvenance: compileRequired(entry.required_provenance),
    requiredContext: compileRequired(entry.required_context),
    passportHeader: compilePassportHeader(entry, path, faults),
    forwardAuthorization: entry.forward_authorization ?? false,
    acceptedProofs: entry.accepted_proofs && new Set(entry.accepted_proofs),
    unbound: compileUnbound(entry, path, faults),
    needsDpopNonce: entry.dpop_nonce !== undefined,
    acceptsUnrevocable: entry.oauth_revocation !== undefined,
    observeUntilSeconds: compileObservation(
      { mode: entry.enforcement, until: entry.observe_until },
      { mode: 'enforcement', untilPath: `${path}/observe_until` },
      issuedAtSeconds,
      faults,
    ),
    sources,
  };
}

/** An unknown class is not an error: this route denies, and the others are not affected. */
function compileFreshness(entry: RouteContent, path: string, faults: Faults): FreshnessRule {
  if (entry.freshness_class === 'bounded' && entry.max_staleness_seconds === undefined) {
    faults.add('max_staleness_missing', `${path}/max_staleness_seconds`, 'required for bounded');
  }
  return freshnessRule(entry);
}

function freshnessRule(entry: RouteContent): FreshnessRule {
  const { freshness_class: freshnessClass, max_staleness_seconds: maxStalenessSeconds } = entry;
  if (freshnessClass === 'realtime') return { kind: 'realtime', maxStalenessSeconds };
  if (freshnessClass !== 'bounded') return { kind: 'unknown', freshnessClass };
  return { kind: 'bounded', maxStalenessSeconds: maxStalenessSeconds ?? 0 };
}

export function groupByFreshness({ routes }: BundleContent): readonly FreshnessGroup[] {
  const groups = new Map<string, { readonly rule: FreshnessGroup['rule']; readonly routeIds: string[] }>();
  for (const entry of routes) {
    const rule = freshnessRule(entry);
    if (rule.kind === 'unknown') continue;
    const name = `${rule.kind} ${rule.maxStalenessSeconds}`;
    const group = groups.get(name) ?? { rule, routeIds: [] };
    groups.set(name, group);
    group.routeIds.push(entry.route_id);
  }
  return [...groups.values()];
}

function compileRouteOrigins(
  entry: RouteContent,
  siteOrigins: ReadonlySet<string>,
  path: string,
  faults: Faults,
): ReadonlySet<string> {
  if (entry.origins === undefined) return siteOrigins;
  for (const [index, origin] of entry.origins.entries()) {
    if (siteOrigins.has(origin)) continue;
    const text = `${showValue(origin)} is not one of the site's origins`;
    faults.add('origin_not_of_site', `${path}/origins/${index}`, text);
  }
  return new Set(entry.origins);
}

function compileSignedHeaders(entry: RouteContent, path: string, faults: Faults): readonly string[] {
  const names = entry.signed_headers ?? [];
  for (const [index, name] of names.entries()) {
    if (isSignableHeaderName(name, passportHeaderOf(entry.passport_header))) continue;
    const text = `${showValue(name)} is not the lower-case name of a header that a transcript may sign`;
    faults.add('header_not_signable', `${path}/signed_headers/${index}`, text);
  }
  return [...names].sort();
}

/** `forward_authorization` forwards the passport to upstreams, which would not find it in `Authorization`. */
function compilePassportHeader(entry: RouteContent, path: string, faults: Faults): PassportHeader {
  if (entry.passport_header !== undefined && entry.forward_authorization === true) {
    const text = 'not together with forward_authorization';
    faults.add('value_invalid', `${path}/passport_header`, text);
  }
  return passportHeaderOf(entry.passport_header);
}

function compileRequired(
  required: { readonly [name: string]: readonly string[] } | undefined,
): readonly RequiredAttribute[] {
  return Object.entries(required ?? {})
    .map(([name, allowed]) => ({ name, allowed: new Set(allowed) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** By `route_id`. */
function* compileSources(
  content: BundleContent,
  faults: Faults,
): Steps<ReadonlyMap<string, readonly SourceRule[]>> {
  const sources = new Map<string, readonly SourceRule[]>();
  for (const [index, entry] of content.route_sources.entries()) {
    const path = pointer('route_sources', index);
    if (sources.has(entry.route_id)) {
      faults.add('duplicate', `${path}/route_id`, `${showValue(entry.route_id)} occurs twice`);
    }
    const rules = entry.allowed_sources.map((source, position) =>
      compileSource(source, position, `${path}/allowed_sources/${position}`, faults),
    );
    sources.set(entry.route_id, rules);
    yield;
  }
  return sources;
}

function compileSource(
  source: AllowedSourceContent,
  index: number,
  path: string,
  faults: Faults,
): SourceRule {
  return {
    index,
    issuer: source.issuer,
    trustDomain: source.trust_domain,
    subject: compileSubject(source, path, faults),
    requiredKeyBinding: source.required_key_binding,
  };
}

function compileSubject(source: AllowedSourceContent, path: string, faults: Faults): SourceRule['subject'] {
  const { subject_exact: exact, subject_prefix: prefix, trust_domain: trustDomain } = source;
  if (exact !== undefined && prefix === undefined) {
    checkSubject(exact, trustDomain, `${path}/subject_exact`, faults);
    return { kind: 'exact', value: exact, isCanonical: isCanonicalSubject(exact) };
  }
  if (prefix !== undefined && exact === undefined) {
    checkSubjectPrefix(prefix, trustDomain, `${path}/subject_prefix`, faults);
    return { kind: 'prefix', value: prefix, isCanonical: isCanonicalSubjectPrefix(prefix) };
  }
  const found = exact === undefined ? 'neither' : 'both';
  faults.add('subject_selector', path, `needs subject_exact or subject_prefix, has ${found}`);
  return { kind: 'exact', value: '', isCanonical: false };
}
