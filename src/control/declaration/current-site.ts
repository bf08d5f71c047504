/** Reads what Control stores of a declared site, in one transaction. */

import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { SiteDeclaration } from '../contract/declaration-contract.ts';
import { holdsSlot } from '../domain/source-states.ts';
import { isEnded } from '../sources/source-changes.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { coordinateChanges } from './differences.ts';

export interface CurrentSource {
  readonly row: RowOf<'source'>;
  /** Oldest first. */
  readonly revisions: readonly RowOf<'sourceRevision'>[];
  /**
   * The revision to compare with the declaration: the one that holds the slot if it matches the declaration, otherwise
   * the newest that is not retired. A draft beside a matching revision thus stays unchanged.
   */
  readonly compared: RowOf<'sourceRevision'>;
}

export interface CurrentSite {
  /** Names of the environment and the fleet that the site is in. */
  readonly place: { readonly environment: string; readonly fleet: string } | undefined;
  readonly environmentId: string | undefined;
  readonly fleetId: string | undefined;
  readonly site: RowOf<'site'> | undefined;
  /** By {@link brokerName}. */
  readonly brokers: ReadonlyMap<string, RowOf<'broker'>>;
  /** By issuer. */
  readonly oauthIssuers: ReadonlyMap<string, RowOf<'oauthIssuer'>>;
  /** By client_id. */
  readonly clients: ReadonlyMap<string, RowOf<'client'>>;
  /** By client_id, then by resource. */
  readonly grants: ReadonlyMap<string, ReadonlyMap<string, RowOf<'clientGrant'>>>;
  /** By route_id. */
  readonly routes: ReadonlyMap<string, RowOf<'route'>>;
  /** By route_id. */
  readonly routeSources: ReadonlyMap<string, RowOf<'routeSources'>>;
  /** By display name, without ended sources: a declared source with the name of an ended one is new. */
  readonly sources: ReadonlyMap<string, CurrentSource>;
  /** By display name, without deleted ones. */
  readonly policies: ReadonlyMap<string, RowOf<'enrollmentPolicy'>>;
  /** Sources and policies that share a display name with others of their kind, so that a declaration cannot tell them apart. */
  readonly namesakes: readonly Namesakes[];
  /** By name; attached ones only. */
  readonly targets: ReadonlyMap<string, RowOf<'target'>>;
}

export interface Namesakes {
  readonly kind: 'sources' | 'enrollment policies';
  readonly name: string;
  readonly ids: readonly string[];
}

/** A broker's name: its issuer and its trust domain. Neither contains a space. */
export function brokerName(issuer: string, trustDomain: string): string {
  return `${issuer} ${trustDomain}`;
}

const EVERYTHING: Page = { after: undefined, limit: Number.MAX_SAFE_INTEGER };

export async function readCurrentSite(tx: Transaction, declaration: SiteDeclaration): Promise<CurrentSite> {
  const siteId = declaration.site.site_id;
  const site = await tx.sites.find(siteId);
  const grants = new Map<string, Map<string, RowOf<'clientGrant'>>>();
  for (const row of await tx.clients.allGrants(siteId)) {
    const ofClient = grants.get(row.clientId) ?? new Map<string, RowOf<'clientGrant'>>();
    grants.set(row.clientId, ofClient.set(row.resource, row));
  }
  const sources = await readSources(tx, declaration);
  const policies = await tx.policies.ofSite(siteId, EVERYTHING);
  return {
    site,
    ...(site === undefined ? await declaredPlace(tx, declaration) : await placeOf(tx, site)),
    brokers: byName(await tx.brokers.list({ siteId }, EVERYTHING), (row) =>
      brokerName(row.issuer, row.trustDomain),
    ),
    oauthIssuers: byName(await tx.oauthIssuers.list({ siteId }, EVERYTHING), ({ issuer }) => issuer),
    clients: byName(await tx.clients.list({ siteId }, EVERYTHING), ({ clientId }) => clientId),
    grants,
    routes: byName(await tx.routes.list({ siteId }, EVERYTHING), ({ routeId }) => routeId),
    routeSources: byName(await tx.routeSources.list({ siteId }, EVERYTHING), ({ routeId }) => routeId),
    sources: byName(sources, ({ row }) => row.displayName),
    policies: byName(policies, ({ displayName }) => displayName),
    namesakes: [
      ...namesakes(
        'sources',
        sources.map(({ row }) => row),
      ),
      ...namesakes('enrollment policies', policies),
    ],
    targets: byName(await tx.targets.attached(siteId), ({ name }) => name),
  };
}

async function placeOf(tx: Transaction, site: RowOf<'site'>) {
  const fleet = await tx.fleets.find(site.fleetId);
  const environment = fleet && (await tx.environments.find(fleet.environmentId));
  return {
    place: { environment: environment?.name ?? '', fleet: fleet?.name ?? '' },
    environmentId: environment?.id,
    fleetId: fleet?.id,
  };
}

async function declaredPlace(tx: Transaction, { environment, fleet }: SiteDeclaration) {
  const environmentId = (await tx.hierarchy.environmentByName(environment))?.id;
  const fleetId = environmentId && (await tx.hierarchy.fleetByName(environmentId, fleet))?.id;
  return { place: undefined, environmentId, fleetId };
}

async function readSources(
  tx: Transaction,
  { site: { site_id: siteId }, sources = [] }: SiteDeclaration,
): Promise<readonly CurrentSource[]> {
  const declared = new Map(sources.map((source) => [source.name, source]));
  const found: CurrentSource[] = [];
  for (const row of await tx.sources.list({ siteId }, EVERYTHING)) {
    const revisions = await tx.sources.revisions(row.id);
    const inUse = revisions.findLast(({ state }) => holdsSlot(state));
    const newest = revisions.findLast(({ state }) => state !== 'retired');
    const source = declared.get(row.displayName);
    const isAsDeclared = inUse && source && coordinateChanges(source, inUse).length === 0;
    const compared = isAsDeclared ? inUse : newest;
    if (compared !== undefined && !isEnded(revisions)) found.push({ row, revisions, compared });
  }
  return found;
}

function namesakes(
  kind: Namesakes['kind'],
  rows: readonly { readonly id: string; readonly displayName: string }[],
): readonly Namesakes[] {
  const idsOf = new Map<string, string[]>();
  for (const { id, displayName } of rows) {
    const ids = idsOf.get(displayName);
    if (ids === undefined) idsOf.set(displayName, [id]);
    else ids.push(id);
  }
  return [...idsOf].filter(([, ids]) => ids.length > 1).map(([name, ids]) => ({ kind, name, ids }));
}

function byName<R>(rows: readonly R[], nameOf: (row: R) => string): ReadonlyMap<string, R> {
  return new Map(rows.map((row) => [nameOf(row), row]));
}

/** A stored definition, for comparing. */
export function definitionOf(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  return isJsonObject(value) ? value : {};
}
