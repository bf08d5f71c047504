/**
 * Signing profiles and key-level route grants: which routes a client's keys may call, and what blocks the others.
 * Source: specification "Client", "Signing profile", "Derived key"; docs/operate/control.md "From key to traffic".
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { accessOf } from '../../bundle/compile/compile-routes.ts';
import { acceptsTranscripts } from '../../bundle/format/proof-members.ts';
import { type AllowedSourceContent, BUNDLE_CONTENT, type RouteContent } from '../../bundle/format/schema.ts';
import { type Access, grantCovers } from '../../protocol/access.ts';
import { isCanonicalSubject } from '../../protocol/spiffe-id.ts';
import type { KeyGrantView, SigningProfileView } from '../contract/derived-keys-contract.ts';
import type { EnrolledProfile } from '../contract/enrollment-contract.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { allRows, routeContent } from './stored-site-content.ts';

/** Profiles of a client, in route order, for every route whose resource it was granted. */
export async function clientSigningProfiles(
  tx: Transaction,
  siteId: string,
  clientId: string,
): Promise<readonly SigningProfileView[]> {
  const found = await readGrantedRoutes(tx, siteId, clientId);
  return found === undefined ? [] : found.granted.map((route) => profileView(found.site, clientId, route));
}

/** The usable profiles, for the workload's enrollment response. Its signers make transcripts. */
export async function enrolledProfiles(
  tx: Transaction,
  siteId: string,
  clientId: string,
): Promise<readonly EnrolledProfile[]> {
  const found = await readGrantedRoutes(tx, siteId, clientId);
  if (found === undefined) return [];
  return found.granted
    .filter(({ content, profileBlockedBy }) => profileBlockedBy === undefined && acceptsTranscripts(content))
    .map(({ content }) => routeProfile(found.site, content));
}

/** Route grants that every key of the client inherits, in route order. */
export async function keyGrants(
  tx: Transaction,
  key: Pick<RowOf<'derivedKey'>, 'siteId' | 'clientId'>,
): Promise<readonly KeyGrantView[]> {
  const found = await readGrantedRoutes(tx, key.siteId, key.clientId);
  return (found?.granted ?? []).map(grantView);
}

export interface ProfilePage {
  readonly clientId?: string | undefined;
  readonly routeId?: string | undefined;
  /** Start after this client and route. */
  readonly after?: { readonly clientId: string; readonly routeId: string } | undefined;
  readonly limit: number;
}

const CLIENTS_AT_ONCE = 50;

/** Profiles of one client or of all clients of a site, ordered by client and route. */
export async function siteSigningProfiles(
  tx: Transaction,
  siteId: string,
  { clientId, routeId, after, limit }: ProfilePage,
): Promise<readonly SigningProfileView[]> {
  const site = await readSiteRoutes(tx, siteId);
  if (site === undefined) return [];
  const profiles: SigningProfileView[] = [];
  for await (const client of clientsFrom(tx, siteId, clientId, after?.clientId)) {
    const grants = await tx.clients.grants(siteId, client.clientId);
    const views = grantedRoutes(site, client, grants)
      .filter(({ content }) => routeId === undefined || content.route_id === routeId)
      .map((route) => profileView(site, client.clientId, route));
    const isLast = client.clientId === after?.clientId;
    profiles.push(...(isLast ? views.filter(({ route_id }) => route_id > after.routeId) : views));
    if (profiles.length >= limit) break;
  }
  return profiles.slice(0, limit);
}

async function* clientsFrom(
  tx: Transaction,
  siteId: string,
  only: string | undefined,
  from: string | undefined,
): AsyncGenerator<RowOf<'client'>> {
  const first = only ?? from;
  if (first !== undefined) {
    const client = await tx.clients.find(siteId, first);
    if (client !== undefined) yield client;
    if (only !== undefined) return;
  }
  for (let after = from; ; ) {
    const page = await tx.clients.list({ siteId }, { after, limit: CLIENTS_AT_ONCE });
    yield* page;
    if (page.length < CLIENTS_AT_ONCE) return;
    after = page.at(-1)?.clientId;
  }
}

async function readGrantedRoutes(
  tx: Transaction,
  siteId: string,
  clientId: string,
): Promise<{ readonly site: SiteRoutes; readonly granted: readonly GrantedRoute[] } | undefined> {
  const client = await tx.clients.find(siteId, clientId);
  const grants = await tx.clients.grants(siteId, clientId);
  // A client without grants has no profiles, so its site's routes need not be read.
  if (client === undefined || grants.length === 0) return undefined;
  const site = await readSiteRoutes(tx, siteId);
  return site && { site, granted: grantedRoutes(site, client, grants) };
}

function profileView(
  site: SiteRoutes,
  clientId: string,
  { content, profileBlockedBy }: GrantedRoute,
): SigningProfileView {
  return { client_id: clientId, ...routeProfile(site, content), ...stateOf(profileBlockedBy) };
}

/** How requests for a route are signed. */
export function routeProfile(
  { origins }: Pick<SiteRoutes, 'origins'>,
  content: RouteContent,
): EnrolledProfile {
  return {
    name: content.route_id,
    route_id: content.route_id,
    method: content.method,
    path_template: content.path_template,
    audience: content.audience,
    origins: [...(content.origins ?? origins)],
    signed_headers: [...(content.signed_headers ?? [])].sort(),
    body: content.body ?? 'bound',
    ...(content.passport_header === undefined ? {} : { passport_header: content.passport_header }),
  };
}

function grantView({ content, createdAtMs, grant, needed, grantBlockedBy }: GrantedRoute): KeyGrantView {
  const sinceMs = Math.max(createdAtMs, grant.createdAtMs);
  return {
    route_id: content.route_id,
    resource: grant.resource,
    needed,
    granted: grant.access,
    ...stateOf(grantBlockedBy),
    ...(grantBlockedBy === undefined ? { since: new Date(sinceMs).toISOString() } : {}),
  };
}

function stateOf(blockedBy: string | undefined) {
  return blockedBy === undefined
    ? ({ state: 'active' } as const)
    : ({ state: 'inactive', blocked_by: blockedBy.slice(0, 512) } as const);
}

const route = Compile(BUNDLE_CONTENT.properties.routes.items);
const allowedSources = Compile(BUNDLE_CONTENT.properties.route_sources.items.properties.allowed_sources);
const origins = Compile(Type.Array(Type.String()));

interface SiteRoute {
  readonly content: RouteContent;
  readonly createdAtMs: number;
  /** Undefined for a route without allowed sources, which is not published. */
  readonly sources: readonly AllowedSourceContent[] | undefined;
}

interface SiteRoutes {
  readonly site: RowOf<'site'>;
  readonly origins: readonly string[];
  readonly routes: readonly SiteRoute[];
}

/** Ordered by route name. @returns undefined when the site does not exist */
export async function readSiteRoutes(tx: Transaction, siteId: string): Promise<SiteRoutes | undefined> {
  const site = await tx.sites.find(siteId);
  if (site === undefined) return undefined;
  const sourceRows = await allRows(
    (page) => tx.routeSources.list({ siteId }, page),
    ({ routeId }) => routeId,
  );
  const sources = new Map(sourceRows.map((row) => [row.routeId, row.allowedSources]));
  const rows = await allRows(
    (page) => tx.routes.list({ siteId }, page),
    ({ routeId }) => routeId,
  );
  const routes = rows.flatMap((row) => {
    const content: unknown = routeContent(row);
    if (!route.Check(content)) return [];
    return [{ content, createdAtMs: row.createdAtMs, sources: parseSources(sources.get(row.routeId)) }];
  });
  const siteOrigins: unknown = JSON.parse(site.origins);
  return { site, origins: origins.Check(siteOrigins) ? siteOrigins : [], routes };
}

function parseSources(stored: string | undefined): readonly AllowedSourceContent[] | undefined {
  if (stored === undefined) return undefined;
  const sources: unknown = JSON.parse(stored);
  return allowedSources.Check(sources) ? sources : undefined;
}

/** A route whose resource was granted to the client, with any access. */
interface GrantedRoute extends SiteRoute {
  readonly grant: RowOf<'clientGrant'>;
  readonly needed: Access;
  /** Why the grant does not cover the route; undefined when it does. */
  readonly grantBlockedBy: string | undefined;
  /** Why the client's requests would still be denied. */
  readonly profileBlockedBy: string | undefined;
}

function grantedRoutes(
  { site, routes }: SiteRoutes,
  client: RowOf<'client'>,
  grants: readonly RowOf<'clientGrant'>[],
): readonly GrantedRoute[] {
  const byResource = new Map(grants.map((grant) => [grant.resource, grant]));
  return routes.flatMap((entry) => {
    const grant = byResource.get(entry.content.resource ?? entry.content.route_id);
    if (grant === undefined) return [];
    const needed = accessOf(entry.content);
    const grantBlockedBy = grantCovers(grant.access, needed)
      ? undefined
      : `the client holds ${grant.access} access to ${grant.resource}, the route needs ${needed}`;
    const profileBlockedBy = grantBlockedBy ?? callBlockedBy(entry, site, client);
    return [{ ...entry, grant, needed, grantBlockedBy, profileBlockedBy }];
  });
}

function callBlockedBy(
  { sources }: SiteRoute,
  site: RowOf<'site'>,
  { subject }: RowOf<'client'>,
): string | undefined {
  if (sources === undefined) return 'the route has no source rules yet, so it is not published';
  if (!isCanonicalSubject(subject)) return "the client's subject is no canonical SPIFFE ID";
  const admits = sources.some(
    (source) =>
      source.issuer === site.issuerUrl &&
      source.trust_domain === site.trustDomain &&
      source.required_key_binding === 'software' &&
      (source.subject_exact === undefined
        ? source.subject_prefix !== undefined && subject.startsWith(source.subject_prefix)
        : source.subject_exact === subject),
  );
  return admits ? undefined : 'no source rule of the route admits the client';
}
