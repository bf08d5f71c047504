/**
 * Matches a site's routes with a client's grants: which routes the client may call, and what blocks the others.
 * Source: specification "Client", "Signing profile"; docs/control.md "From key to traffic".
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { accessOf } from '../../bundle/compile/compile-routes.ts';
import { type AllowedSourceContent, BUNDLE_CONTENT, type RouteContent } from '../../bundle/format/schema.ts';
import { type Access, grantCovers } from '../../protocol/access.ts';
import { isCanonicalSubject } from '../../protocol/spiffe-id.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { allRows, routeContent } from './stored-site-content.ts';

const route = Compile(BUNDLE_CONTENT.properties.routes.items);
const allowedSources = Compile(BUNDLE_CONTENT.properties.route_sources.items.properties.allowed_sources);
const origins = Compile(Type.Array(Type.String()));

interface SiteRoute {
  readonly content: RouteContent;
  readonly createdAtMs: number;
  /** Undefined for a route without allowed sources, which is not published. */
  readonly sources: readonly AllowedSourceContent[] | undefined;
}

export interface SiteRoutes {
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
export interface GrantedRoute extends SiteRoute {
  readonly grant: RowOf<'clientGrant'>;
  readonly needed: Access;
  /** Why the grant does not cover the route; undefined when it does. */
  readonly grantBlockedBy: string | undefined;
  /** Why the client's requests would still be denied. */
  readonly profileBlockedBy: string | undefined;
}

export function grantedRoutes(
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
  if (sources === undefined) return 'the route has no sources yet, so it is not published';
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
  return admits ? undefined : 'no source of the route admits the client';
}
