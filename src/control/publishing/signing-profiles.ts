/**
 * Signing profiles and key-level route grants: which routes a client's keys may call.
 * Source: specification "Signing profile", "Derived key"; docs/control.md "From key to traffic".
 */
import type { EnrolledProfile } from '../../api-contract/enrollment-contract.ts';
import type { KeyGrantView, SigningProfileView } from '../../api-contract/readiness-contract.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { type GrantedRoute, grantedRoutes, readSiteRoutes, type SiteRoutes } from './site-routes.ts';

/** Profiles of a client, in route order, for every route whose resource it was granted. */
export async function clientSigningProfiles(
  tx: Transaction,
  siteId: string,
  clientId: string,
): Promise<readonly SigningProfileView[]> {
  const found = await readGrantedRoutes(tx, siteId, clientId);
  return found === undefined ? [] : found.granted.map((route) => profileView(found.site, clientId, route));
}

/** The usable profiles, for the workload's enrollment response. */
export async function enrolledProfiles(
  tx: Transaction,
  siteId: string,
  clientId: string,
): Promise<readonly EnrolledProfile[]> {
  const profiles = await clientSigningProfiles(tx, siteId, clientId);
  return profiles
    .filter(({ state }) => state === 'active')
    .map(({ client_id: _, state: __, blocked_by: ___, ...profile }) => profile);
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
  /** Start after this client and route. */
  readonly after?: { readonly clientId: string; readonly routeId: string } | undefined;
  readonly limit: number;
}

const CLIENTS_AT_ONCE = 50;

/** Profiles of one client or of all clients of a site, ordered by client and route. */
export async function siteSigningProfiles(
  tx: Transaction,
  siteId: string,
  { clientId, after, limit }: ProfilePage,
): Promise<readonly SigningProfileView[]> {
  const site = await readSiteRoutes(tx, siteId);
  if (site === undefined) return [];
  const profiles: SigningProfileView[] = [];
  for await (const client of clientsFrom(tx, siteId, clientId, after?.clientId)) {
    const grants = await tx.clients.grants(siteId, client.clientId);
    const views = grantedRoutes(site, client, grants).map((route) =>
      profileView(site, client.clientId, route),
    );
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
  { origins }: SiteRoutes,
  clientId: string,
  { content, profileBlockedBy }: GrantedRoute,
): SigningProfileView {
  return {
    client_id: clientId,
    name: content.route_id,
    route_id: content.route_id,
    method: content.method,
    path_template: content.path_template,
    audience: content.audience,
    origins: [...(content.origins ?? origins)],
    signed_headers: [...(content.signed_headers ?? [])].sort(),
    body: content.body ?? 'bound',
    ...stateOf(profileBlockedBy),
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
