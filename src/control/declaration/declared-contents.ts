/** What a bundle contains of a site before and after the steps of a declaration, in memory. */
import { BUNDLE_FORMAT } from '../../bundle/format/bundle-limits.ts';
import type { ClientContent } from '../../bundle/format/schema.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import type { DeclaredContents, SiteDeclaration } from '../contract/declaration-contract.ts';
import { holdsSlot } from '../domain/source-states.ts';
import {
  clientContent,
  hasKeys,
  oauthIssuerContent,
  publishedRoutes,
  readEachClient,
  readRoutes,
  readSitePolicy,
  routeContent,
} from '../publishing/stored-site-content.ts';
import { inBundle, membersWithheldFor, withheldMembers } from '../publishing/withheld-members.ts';
import type { Transaction } from '../store/transaction.ts';
import { brokerName, type CurrentSite, type CurrentSource, definitionOf } from './current-site.ts';
import type { PlannedStep } from './plan.ts';

type Published = Pick<DeclaredContents, 'before' | 'published'>;

/** What a bundle of the site contains now, without derived keys. Undefined without the site. */
export async function readPublished(
  tx: Transaction,
  siteId: string,
  nowSeconds: number,
): Promise<Published | undefined> {
  const site = await tx.sites.find(siteId);
  if (site === undefined) return undefined;
  const clients: ClientContent[] = [];
  for await (const client of readEachClient(tx, site)) clients.push(client);
  const withheld = await withheldMembers(tx, siteId);
  const policy = await readSitePolicy(tx, site, { clients, ...(await readRoutes(tx, siteId)) });
  const { content: before } = inBundle(policy, { withheld, nowSeconds });
  const isPublished = site.wholeNeeded === 0 && (await tx.changes.contentAfter(siteId, 0)).length === 0;
  if (site.head === null || !isPublished) return { before };
  const { head, policyRevision: policy_revision, revision } = site;
  return { before, published: { revision, head, policy_revision } };
}

export function contentsOf(
  published: Published,
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
  nowSeconds: number,
): DeclaredContents {
  const withheld = membersWithheldFor(current.targets.values());
  const { content } = inBundle(policyAfter(declaration, current, steps), { withheld, nowSeconds });
  const { trust_anchor_sources: _, ...policy } = content;
  const changesClients = steps.some(({ kind }) => kind === 'client' || kind === 'grant');
  const clients = changesClients ? clientsAfter(declaration, current, steps) : published.before.clients;
  const { sources } = current;
  const revokes = ({ row, revisions }: CurrentSource) =>
    row.onRetire === 'revoke' && revisions.some(({ state }) => holdsSlot(state));
  return {
    ...published,
    after: changedMembers({ ...policy, clients }, published.before),
    revoking_sources: steps.flatMap(({ kind, name, verb }) => {
      const source = verb === 'remove' && kind === 'source' ? sources.get(name) : undefined;
      return source !== undefined && revokes(source) ? [source.row.id] : [];
    }),
  };
}

/** A large site would otherwise be in the answer twice. */
function changedMembers(after: JsonObject, before: JsonObject): JsonObject {
  const isSame = (member: string) =>
    after[member] === before[member] || JSON.stringify(after[member]) === JSON.stringify(before[member]);
  return Object.fromEntries(Object.entries(after).filter(([member]) => !isSame(member)));
}

function clientsAfter(
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
): readonly ClientContent[] {
  const { site, clients = [] } = declaration;
  const { issuer_url: issuerUrl, trust_domain: trustDomain } = site;
  const stays = staysAfter(steps)('client');
  const after = new Map<string, ClientContent>();
  for (const row of current.clients.values()) {
    if (!stays(row.clientId)) continue;
    const grants = [...(current.grants.get(row.clientId)?.values() ?? [])];
    after.set(row.clientId, clientContent({ issuerUrl, trustDomain }, row, grants));
  }
  for (const { client_id, subject, context = {}, grants = [] } of clients) {
    after.set(client_id, {
      client_id,
      issuer: issuerUrl,
      trust_domain: trustDomain,
      subject,
      context,
      grants: grants.map(({ access, resource }) => ({ resource, access })),
    });
  }
  return [...after.values()];
}

/** By kind: whether the steps keep the member of that name. */
function staysAfter(steps: readonly PlannedStep[]) {
  const removed = new Set(
    steps.flatMap(({ verb, kind, name }) => (verb === 'remove' ? `${kind} ${name}` : [])),
  );
  return (kind: 'broker' | 'client' | 'oauth_issuer' | 'route') => (name: string) =>
    !removed.has(`${kind} ${name}`);
}

/** The site's bundle content after the steps, with one client and without sources. */
export function policyAfter(
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
): JsonObject {
  const { site } = declaration;
  const skewSeconds = site.skew_seconds ?? current.site?.skewSeconds;
  const staysAs = staysAfter(steps);
  return {
    format: BUNDLE_FORMAT,
    auth_site: site.site_id,
    ...(skewSeconds === undefined ? {} : { skew_seconds: skewSeconds }),
    origins: site.origins,
    single_verifier: site.single_verifier ?? current.site?.singleVerifier === 1,
    ...(site.unmatched === 'observe' && { unmatched: site.unmatched, unmatched_until: site.unmatched_until }),
    trust_anchor_sources: [],
    issuers: brokersAfter(declaration, current, staysAs('broker')),
    ...oauthIssuersAfter(declaration, current, staysAs('oauth_issuer')),
    clients: oneClient(declaration, current),
    ...routesAfter(declaration, current, staysAs('route')),
  };
}

type Stays = (name: string) => boolean;

function brokersAfter({ brokers = [] }: SiteDeclaration, current: CurrentSite, stays: Stays) {
  const stored = [...current.brokers].filter(([name]) => stays(name));
  const after = new Map(stored.map(([name, { definition }]) => [name, definitionOf(definition)]));
  for (const { url: _, keys = [], ...members } of brokers) {
    const name = brokerName(members.issuer, members.trust_domain);
    after.set(name, { ...members, keys: after.has(name) ? after.get(name)?.keys : keys });
  }
  return [...after.values()].filter(hasKeys);
}

/** A declared server keeps its keys, unless its key set is another one. */
function oauthIssuersAfter(
  { oauth_issuers: declared = [] }: SiteDeclaration,
  { oauthIssuers }: CurrentSite,
  stays: Stays,
) {
  const stored = [...oauthIssuers.values()].filter(({ issuer }) => stays(issuer));
  const after = new Map(stored.map((row) => [row.issuer, oauthIssuerContent(row)]));
  for (const { issuer, ...definition } of declared) {
    const held = oauthIssuers.get(issuer);
    const isSameKeySet = held !== undefined && definitionOf(held.definition).jwks_url === definition.jwks_url;
    const keys = isSameKeySet ? held.keys : null;
    after.set(issuer, oauthIssuerContent({ issuer, definition: JSON.stringify(definition), keys }));
  }
  return after.size === 0 ? {} : { oauth_issuers: [...after.values()] };
}

/** One represents all: each has the site's issuer and trust domain. */
function oneClient({ site, clients = [] }: SiteDeclaration, current: CurrentSite): readonly JsonObject[] {
  const [declared] = clients;
  const [held] = current.clients.values();
  const clientId = declared?.client_id ?? held?.clientId;
  if (clientId === undefined) return [];
  const subject = declared?.subject ?? held?.subject;
  const { issuer_url: issuer, trust_domain: trustDomain } = site;
  return [{ client_id: clientId, issuer, trust_domain: trustDomain, subject, context: {}, grants: [] }];
}

function routesAfter({ routes = [] }: SiteDeclaration, current: CurrentSite, stays: Stays) {
  const stored = [...current.routes.values()].filter(({ routeId }) => stays(routeId));
  const sources = new Map<string, unknown>();
  for (const { routeId, allowedSources } of current.routeSources.values()) {
    sources.set(routeId, JSON.parse(allowedSources));
  }
  const after = new Map<unknown, JsonObject>(stored.map((row) => [row.routeId, routeContent(row)]));
  for (const { allowed_sources: declared, ...route } of routes) {
    after.set(route.route_id, route);
    sources.set(route.route_id, declared);
  }
  return publishedRoutes([...after.values()], sources);
}
