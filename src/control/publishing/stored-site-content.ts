/**
 * Reads a site's rows as bundle content, without validating it. Signing validates shape and rules
 * (`publishing-documents.ts` of the bundle), and {@link ../resource/change.ts SiteCheck} does when the configuration changes.
 * Source: docs/design/bundle.md "Content"; docs/operate/control.md "From key to traffic".
 */
import { keyProvenance } from '../../bundle/authoring/key-provenance.ts';
import { BUNDLE_FORMAT } from '../../bundle/format/bundle-limits.ts';
import type {
  BlockedCallerContent,
  BundleContent,
  ClientContent,
  DerivedKeyContent,
} from '../../bundle/format/schema.ts';
import { parsePublicJwk } from '../../protocol/public-key.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { brokerPlace } from '../store/repositories/brokers-repository.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/**
 * All content except derived keys and the chain's members: revision, previous head, times. Not validated yet. Observations and
 * accepted proofs are as configured: `withheld-members.ts` says which of them a bundle holds.
 */
export type SitePolicy = JsonObject & Pick<BundleContent, 'format' | 'auth_site'>;

/** Published routes with their sources. */
export type RoutesContent = Awaited<ReturnType<typeof readRoutes>>;

const PAGE_ROWS = 1000;

/** @param large members that hold many entries */
export async function readSitePolicy(
  tx: Transaction,
  site: RowOf<'site'>,
  large: RoutesContent & { readonly clients: readonly ClientContent[] },
): Promise<SitePolicy> {
  const { id: siteId } = site;
  const brokers = await allRows((page) => tx.brokers.list({ siteId }, page), brokerPlace);
  return {
    format: BUNDLE_FORMAT,
    auth_site: siteId,
    skew_seconds: site.skewSeconds,
    origins: parseStored(site.origins),
    single_verifier: site.singleVerifier === 1,
    ...unmatchedMembers(site),
    trust_anchor_sources: await readTrustAnchorSources(tx, siteId),
    issuers: brokers.map(({ definition }) => parseStored(definition)).filter(hasKeys),
    ...(await readOAuthIssuers(tx, siteId)),
    ...(await readBlocked(tx, site)),
    ...large,
  };
}

/** Absent unless requests that no route matches are observed. */
function unmatchedMembers({ unmatchedUntilSeconds: until }: Pick<RowOf<'site'>, 'unmatchedUntilSeconds'>) {
  return until === null ? {} : { unmatched: 'observe' as const, unmatched_until: formatTime(until) };
}

/** Also those without keys, which rules across members concern, too: `withheld-members.ts` leaves them out. */
async function readOAuthIssuers(tx: Transaction, siteId: string) {
  const rows = await allRows(
    (page) => tx.oauthIssuers.list({ siteId }, page),
    ({ issuer }) => issuer,
  );
  return rows.length === 0 ? {} : { oauth_issuers: rows.map(oauthIssuerContent) };
}

/** An entry of a bundle's `oauth_issuers`, whose `keys` may be empty; not validated. */
export function oauthIssuerContent({
  definition,
  issuer,
  keys,
}: Pick<RowOf<'oauthIssuer'>, 'definition' | 'issuer' | 'keys'>): JsonObject {
  const stored = parseStored(definition);
  const { jwks_url: _url, ...members } = isJsonObject(stored) ? stored : {};
  return { issuer, ...members, keys: keys === null ? [] : parseStored(keys) };
}

/** The member is absent without blocked callers, and until every target knows it. */
async function readBlocked(tx: Transaction, { id: siteId, blockedPublished }: RowOf<'site'>) {
  if (blockedPublished === 0) return {};
  const rows = await allRows(
    (page) => tx.blockedCallers.list(siteId, page),
    ({ name }) => name,
  );
  return rows.length === 0 ? {} : { blocked: rows.map(blockedContent) };
}

function blockedContent(row: RowOf<'blockedCaller'>): BlockedCallerContent {
  const { issuer, subject, holderThumbprint } = row;
  return {
    issuer,
    ...(subject === null ? {} : { subject }),
    ...(holderThumbprint === null ? {} : { holder_thumbprint: holderThumbprint }),
  };
}

/** A broker or authorization server without keys is left out. */
export function hasKeys(definition: unknown): boolean {
  return isJsonObject(definition) && Array.isArray(definition.keys) && definition.keys.length > 0;
}

/**
 * Lists one entry per source, even if two of its revisions are in listed states. The revision that is publishing wins over
 * the one that it will replace.
 */
async function readTrustAnchorSources(tx: Transaction, siteId: string): Promise<readonly JsonObject[]> {
  const listed = new Map<string, RowOf<'sourceRevision'>>();
  // Oldest first: a newer revision replaces an older one unless that is publishing.
  for (const row of await tx.sources.inStates(siteId, ['publishing', 'active', 'suspended'])) {
    if (listed.get(row.sourceId)?.state !== 'publishing') listed.set(row.sourceId, row);
  }
  return [...listed.values()].map(({ sourceId, revision, fingerprint }) => ({
    id: sourceId,
    revision,
    fingerprint,
  }));
}

/** All clients, in order. */
export async function* readEachClient(tx: Transaction, site: RowOf<'site'>): AsyncGenerator<ClientContent> {
  for (let after: string | undefined; ; ) {
    const rows = await tx.clients.list({ siteId: site.id }, { after, limit: PAGE_ROWS });
    yield* await withGrants(tx, site, rows);
    if (rows.length < PAGE_ROWS) return;
    after = rows.at(-1)?.clientId;
  }
}

/** Those of the given clients that exist. */
export async function readClientsOf(
  tx: Transaction,
  site: RowOf<'site'>,
  clientIds: readonly string[],
): Promise<readonly ClientContent[]> {
  return withGrants(tx, site, await tx.publication.clients(site.id, clientIds));
}

async function withGrants(
  tx: Transaction,
  site: RowOf<'site'>,
  rows: readonly RowOf<'client'>[],
): Promise<readonly ClientContent[]> {
  const clientIds = rows.map(({ clientId }) => clientId);
  const grants = groupedByClient(await tx.publication.grantsOf(site.id, clientIds));
  return rows.map((row) => clientContent(site, row, grants.get(row.clientId) ?? []));
}

/**
 * Rules across members need at most one client, because all have the site's issuer and trust domain. Reading 100,000
 * would hold the site's lock, and SQLite's only writer, for seconds.
 */
export async function readOneClient(tx: Transaction, site: RowOf<'site'>): Promise<readonly ClientContent[]> {
  const rows = await tx.clients.list({ siteId: site.id }, { after: undefined, limit: 1 });
  return rows.map((row) => clientContent(site, row, []));
}

export function groupedByClient(
  grants: readonly RowOf<'clientGrant'>[],
): ReadonlyMap<string, readonly RowOf<'clientGrant'>[]> {
  const groups = new Map<string, RowOf<'clientGrant'>[]>();
  for (const grant of grants) {
    const group = groups.get(grant.clientId);
    if (group === undefined) groups.set(grant.clientId, [grant]);
    else group.push(grant);
  }
  return groups;
}

/** A client's entry. Its keys' passports carry the site's issuer and trust domain, and the client's subject. */
export function clientContent(
  site: Pick<RowOf<'site'>, 'issuerUrl' | 'trustDomain'>,
  { clientId, subject, context }: RowOf<'client'>,
  grants: readonly RowOf<'clientGrant'>[],
): ClientContent {
  return {
    client_id: clientId,
    issuer: site.issuerUrl,
    trust_domain: site.trustDomain,
    subject,
    context: parseAttributes(context),
    grants: grants.map(({ resource, access }) => ({ resource, access })),
  };
}

export async function readRoutes(tx: Transaction, siteId: string) {
  const sources = new Map<string, unknown>();
  const sourceRows = await allRows(
    (page) => tx.routeSources.list({ siteId }, page),
    ({ routeId }) => routeId,
  );
  for (const { routeId, allowedSources } of sourceRows) sources.set(routeId, parseStored(allowedSources));
  const rows = await allRows(
    (page) => tx.routes.list({ siteId }, page),
    ({ routeId }) => routeId,
  );
  return publishedRoutes(rows.map(routeContent), sources);
}

/** Leaves out routes without allowed sources. @param sources by route_id */
export function publishedRoutes(routes: readonly JsonObject[], sources: ReadonlyMap<unknown, unknown>) {
  const published = routes.filter(({ route_id: routeId }) => sources.has(routeId));
  return {
    routes: published,
    route_sources: published.map(({ route_id: routeId }) => ({
      route_id: routeId,
      allowed_sources: sources.get(routeId),
    })),
  };
}

/** An entry of a bundle's `routes`; not validated. */
export function routeContent({
  routeId,
  definition,
}: Pick<RowOf<'route'>, 'routeId' | 'definition'>): JsonObject {
  const stored = parseStored(definition);
  const { enforcement, ...members } = isJsonObject(stored) ? stored : {};
  // A bundle has no word for the default.
  return { route_id: routeId, ...members, ...(enforcement === 'observe' && { enforcement }) };
}

/** @throws Error when the stored public key is invalid, which enrollment never stores */
export function derivedKeyContent(row: RowOf<'derivedKey'>): DerivedKeyContent {
  const jwk = parsePublicJwk(parseStored(row.publicJwk));
  if (jwk === undefined) throw new Error(`derived key ${row.keyId} has no public key`);
  return {
    key_id: row.keyId,
    client_id: row.clientId,
    jwk,
    status: row.status,
    expires_at: formatTime(row.expiresAtSeconds),
    provenance: keyProvenance(row, parseAttributes(row.provenance)),
  };
}

/** All rows of a paged list, in order. */
export async function allRows<R>(
  read: (page: Page) => Promise<readonly R[]>,
  cursorOf: (row: R) => string,
): Promise<readonly R[]> {
  const rows: R[] = [];
  for (let after: string | undefined; ; ) {
    const page = await read({ after, limit: PAGE_ROWS });
    rows.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) return rows;
    after = cursorOf(last);
  }
}

function parseStored(text: string): unknown {
  return JSON.parse(text);
}

/** Skips members that are not strings. */
function parseAttributes(text: string): { readonly [name: string]: string } {
  const stored = parseStored(text);
  if (!isJsonObject(stored)) return {};
  return Object.fromEntries(
    Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
