/**
 * A site's rows as a bundle's content. What is read here is put together as it is kept: shape and rules are checked by
 * whoever signs it (`publishing-documents.ts` of the bundle) and by {@link ../services.ts SiteCheck} when it is changed.
 * Source: docs/bundle.md "Content"; docs/control.md "From key to traffic".
 */
import { BUNDLE_FORMAT } from '../../bundle/format/bundle-limits.ts';
import type { BundleContent, ClientContent, DerivedKeyContent } from '../../bundle/format/schema.ts';
import { formatTime } from '../../bundle/format/times.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { MAX_ATTRIBUTES } from '../../protocol/limits.ts';
import { parsePublicJwk } from '../../protocol/public-key.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Everything but the derived keys and what the chain adds: revision, head before, times. Shape not checked yet. */
export type SitePolicy = JsonObject & Pick<BundleContent, 'format' | 'auth_site'>;

const PAGE_ROWS = 1000;

export async function readSitePolicy(tx: Transaction, site: RowOf<'site'>): Promise<SitePolicy> {
  const { id: siteId } = site;
  const brokers = await allRows(
    (page) => tx.brokers.list({ siteId }, page),
    ({ issuer }) => issuer,
  );
  return {
    format: BUNDLE_FORMAT,
    auth_site: siteId,
    skew_seconds: site.skewSeconds,
    origins: parseStored(site.origins),
    single_verifier: site.singleVerifier === 1,
    trust_anchor_sources: await readTrustAnchorSources(tx, siteId),
    issuers: brokers.map(({ definition }) => parseStored(definition)),
    clients: await readClients(tx, site),
    ...(await readRoutes(tx, siteId)),
  };
}

/**
 * One entry a source, although two of its revisions may be on the way at once: the one that is being published stands
 * for the one that it is about to replace.
 */
async function readTrustAnchorSources(tx: Transaction, siteId: string): Promise<readonly JsonObject[]> {
  const listed = new Map<string, RowOf<'sourceRevision'>>();
  // Oldest first, so that a newer revision replaces an older one, unless that one is on its way.
  for (const row of await tx.sources.inStates(siteId, ['publishing', 'active', 'suspended'])) {
    if (listed.get(row.sourceId)?.state !== 'publishing') listed.set(row.sourceId, row);
  }
  return [...listed.values()].map(({ sourceId, revision, fingerprint }) => ({
    id: sourceId,
    revision,
    fingerprint,
  }));
}

async function readClients(tx: Transaction, site: RowOf<'site'>): Promise<readonly ClientContent[]> {
  const rows = await allRows(
    (page) => tx.clients.list({ siteId: site.id }, page),
    ({ clientId }) => clientId,
  );
  const grants = groupedByClient(await tx.clients.allGrants(site.id));
  return rows.map((row) => clientContent(site, row, grants.get(row.clientId) ?? []));
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

/** The passports of its keys name the site's issuer and trust domain, and the client's subject. */
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

/** A route that nobody may call yet is kept, and left out. */
async function readRoutes(tx: Transaction, siteId: string) {
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
  const published = rows.filter(({ routeId }) => sources.has(routeId));
  return {
    routes: published.map((row) => routeContent(row)),
    route_sources: published.map(({ routeId }) => ({
      route_id: routeId,
      allowed_sources: sources.get(routeId),
    })),
  };
}

/** As in a bundle's `routes`; shape not checked. */
export function routeContent({
  routeId,
  definition,
}: Pick<RowOf<'route'>, 'routeId' | 'definition'>): JsonObject {
  const stored = parseStored(definition);
  return { route_id: routeId, ...(isJsonObject(stored) ? stored : {}) };
}

/** @throws Error when the stored public key is none: nothing that enrollment lets in */
export function derivedKeyContent(row: RowOf<'derivedKey'>): DerivedKeyContent {
  const jwk = parsePublicJwk(parseStored(row.publicJwk));
  if (jwk === undefined) throw new Error(`derived key ${row.keyId} has no public key`);
  return {
    key_id: row.keyId,
    client_id: row.clientId,
    jwk,
    status: row.status,
    expires_at: formatTime(row.expiresAtSeconds),
    provenance: provenanceOf(row),
  };
}

/**
 * What a workload's token says of it may be longer than a bundle's attributes, or written in other letters. Such an entry
 * is left out, which a route that requires it denies; it must not keep a whole site from being published. Every derived
 * key has the first four; entries of its enrollment cannot replace them.
 */
function provenanceOf(row: RowOf<'derivedKey'>): { readonly [name: string]: string } {
  const entries = {
    enrollment_policy: row.policyId,
    source: row.sourceId,
    verified_issuer: row.verifiedIssuer,
    verified_subject: row.verifiedSubject,
  };
  const own = Object.entries(entries);
  const others = Object.entries(parseAttributes(row.provenance)).filter(
    ([name]) => !Object.hasOwn(entries, name),
  );
  const sound = [...own, ...others].filter(([name, value]) => isIdentifier(name) && isIdentifier(value));
  return Object.fromEntries(sound.slice(0, MAX_ATTRIBUTES));
}

/** Everything that a paged list has, in its order. */
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

/** Members that are no text are not attributes. */
function parseAttributes(text: string): { readonly [name: string]: string } {
  const stored = parseStored(text);
  if (!isJsonObject(stored)) return {};
  return Object.fromEntries(
    Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
