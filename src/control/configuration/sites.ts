/**
 * Auth Sites. Identifier, trust domain and issuer URL are fixed: transcripts, passports and enrolled workloads name
 * them, and a site whose names changed would be another one for all of them.
 */

import { DEFAULT_SKEW_SECONDS } from '../../protocol/limits.ts';
import { parseOrigin } from '../../protocol/request-target.ts';
import {
  DEFAULT_BUNDLE_LIFETIME_SECONDS,
  type NewSite,
  type SiteChange,
  type SiteFloorView,
  type SiteView,
} from '../api/contract/hierarchy.ts';
import { Refusal, type RefusalFault } from '../domain/refusal.ts';
import type { Place, Reach } from '../domain/roles.ts';
import { DEFAULT_SOURCE_CAPACITY, holdsSlot, SOURCE_STATES } from '../domain/source.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import {
  audited,
  type ConfigurationDeps,
  found,
  INSTALLATION_LOCK,
  newVersion,
  nextVersion,
  publishChange,
  requireVersion,
  versionOf,
} from './change.ts';
import { refuseHeldScope } from './environments.ts';

/** Makes a new site's signing keys, in the transaction that makes the site. */
export type CreateSiteKeys = (tx: Transaction, siteId: string, nowMs: number) => Promise<unknown>;

export interface SitesDeps extends ConfigurationDeps {
  readonly createSiteKeys: CreateSiteKeys;
}

export class Sites {
  readonly #deps: SitesDeps;

  constructor(deps: SitesDeps) {
    this.#deps = deps;
  }

  /** All within reach, with the place of each. */
  list(reach: Reach, page: Page): Promise<readonly SiteView[]> {
    return this.#deps.store.read(async (tx) => viewsOf(tx, await tx.hierarchy.reachedSites(reach, page)));
  }

  listOfFleet(fleetId: string, page: Page): Promise<readonly SiteView[]> {
    return this.#deps.store.read(async (tx) => viewsOf(tx, await tx.sites.list({ fleetId }, page)));
  }

  get(id: string): Promise<SiteView> {
    return this.#deps.store.read(async (tx) => {
      const row = found(await tx.sites.find(id));
      return siteView(row, found(await tx.hierarchy.placeOfSite(id)));
    });
  }

  /** @throws Refusal `not_found` without the fleet, `already_exists` for a taken identifier or issuer, `definition_invalid` */
  create(operation: Operation, fleetId: string, site: NewSite): Promise<Created<SiteView, never>> {
    const { store, nowMs, createSiteKeys } = this.#deps;
    const now = nowMs();
    refuseFaults([...originFaults(site.origins), ...issuerFaults(site.issuer_url)]);
    return createOnce(store, INSTALLATION_LOCK, operation, now, async (tx) => {
      const fleet = found(await tx.fleets.find(fleetId));
      if ((await tx.sites.find(site.site_id)) !== undefined) {
        throw new Refusal('already_exists', 'there is a site of that identifier');
      }
      if (await tx.hierarchy.hasIssuerUrl(site.issuer_url)) {
        throw new Refusal('already_exists', 'another site has that issuer_url');
      }
      const row = newRow(fleetId, site, now);
      await tx.sites.add(row);
      await createSiteKeys(tx, row.id, now);
      await publishChange(tx, row.id, { kind: 'policy' }, now);
      const place = { environmentId: fleet.environmentId, fleetId, siteId: row.id };
      const after = siteView(row, place);
      return {
        result: after,
        audit: [audited(operation, { what: 'site.create', id: row.id, place, after })],
      };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `definition_invalid` */
  change(operation: Operation, id: string, version: number, change: SiteChange): Promise<SiteView> {
    const { store, nowMs, siteCheck } = this.#deps;
    const now = nowMs();
    refuseFaults(originFaults(change.origins ?? []));
    return store.mutate({ kind: 'site', siteId: id }, async (tx) => {
      const row = found(await tx.sites.find(id));
      requireVersion(row, version);
      const place = found(await tx.hierarchy.placeOfSite(id));
      const set = changedColumns(change);
      await tx.sites.change(row, set, now);
      if (isPublished(change)) {
        await siteCheck(tx, id);
        await publishChange(tx, id, { kind: 'policy' }, now);
      }
      const before = siteView(row, place);
      const after = siteView({ ...row, ...set, ...nextVersion(row, now) }, place);
      return {
        result: after,
        audit: [audited(operation, { what: 'site.change', id, place, before, after })],
      };
    });
  }

  /** Publishes everything from now on above the revision. @throws Refusal `not_found` */
  async raiseFloor(operation: Operation, id: string, aboveRevision: number): Promise<SiteFloorView> {
    const { store } = this.#deps;
    const before = found(await store.read((tx) => tx.sites.find(id)));
    if (isAbove(before, aboveRevision)) return floorView(before);
    return store.mutate({ kind: 'site', siteId: id }, async (tx) => {
      const row = found(await tx.sites.find(id));
      const place = found(await tx.hierarchy.placeOfSite(id));
      const floorRevision = Math.max(row.floorRevision, aboveRevision);
      await tx.hierarchy.advance(id, { floorRevision, wholeNeeded: flag(true) });
      tx.notify({ topic: 'site_changed', reference: id });
      const after = floorView({ ...row, floorRevision });
      const change = { what: 'site.raise_floor', id, place, before: floorView(row), after } as const;
      return { result: after, audit: [audited(operation, change)] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `still_in_use` while anything of it is of use */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    const { store, nowMs } = this.#deps;
    return store.mutate({ kind: 'site', siteId: id }, async (tx) => {
      const row = found(await tx.sites.find(id));
      requireVersion(row, version);
      const place = found(await tx.hierarchy.placeOfSite(id));
      await refuseUse(tx, id, Math.floor(nowMs() / 1000));
      await tx.sites.remove(id);
      // Another site may get the identifier, and must not continue this chain.
      tx.notify({ topic: 'site_published', reference: id });
      const before = siteView(row, place);
      return { result: undefined, audit: [audited(operation, { what: 'site.delete', id, place, before })] };
    });
  }
}

async function viewsOf(tx: Transaction, rows: readonly RowOf<'site'>[]): Promise<readonly SiteView[]> {
  const views: SiteView[] = [];
  for (const row of rows) views.push(siteView(row, found(await tx.hierarchy.placeOfSite(row.id))));
  return views;
}

function newRow(fleetId: string, site: NewSite, nowMs: number) {
  return {
    id: site.site_id,
    fleetId,
    displayName: site.display_name,
    trustDomain: site.trust_domain,
    issuerUrl: site.issuer_url,
    origins: JSON.stringify(site.origins),
    skewSeconds: site.skew_seconds ?? DEFAULT_SKEW_SECONDS,
    singleVerifier: flag(site.single_verifier ?? false),
    bundleLifetimeSeconds: site.bundle_lifetime_seconds ?? DEFAULT_BUNDLE_LIFETIME_SECONDS,
    sourceCapacity: site.source_capacity ?? DEFAULT_SOURCE_CAPACITY,
    revision: 0,
    head: null,
    baseRevision: 0,
    floorRevision: 0,
    wholeNeeded: flag(true),
    ...newVersion(nowMs),
  };
}

function flag(value: boolean): 0 | 1 {
  return value ? 1 : 0;
}

function changedColumns(change: SiteChange) {
  return {
    ...(change.display_name === undefined ? {} : { displayName: change.display_name }),
    ...(change.origins === undefined ? {} : { origins: JSON.stringify(change.origins) }),
    ...(change.skew_seconds === undefined ? {} : { skewSeconds: change.skew_seconds }),
    ...(change.single_verifier === undefined ? {} : { singleVerifier: flag(change.single_verifier) }),
    ...(change.bundle_lifetime_seconds === undefined
      ? {}
      : { bundleLifetimeSeconds: change.bundle_lifetime_seconds }),
    ...(change.source_capacity === undefined ? {} : { sourceCapacity: change.source_capacity }),
  };
}

/** Whether bundles hold any of it. */
function isPublished(change: SiteChange): boolean {
  const { display_name: _name, source_capacity: _capacity, ...published } = change;
  return Object.keys(published).length > 0;
}

function originFaults(origins: readonly string[]): readonly RefusalFault[] {
  return origins.flatMap((origin, index) =>
    parseOrigin(origin) === undefined
      ? [{ pointer: `/body/origins/${index}`, reason: 'not scheme://authority in canonical form' }]
      : [],
  );
}

/** An absolute URL in the one spelling that URL parsers write, or that without its last slash. */
function issuerFaults(issuerUrl: string): readonly RefusalFault[] {
  const fault = { pointer: '/body/issuer_url', reason: 'not an absolute URL in its normal spelling' };
  if (!URL.canParse(issuerUrl)) return [fault];
  const { href, username, password, search, hash } = new URL(issuerUrl);
  const isPlain = username === '' && password === '' && search === '' && hash === '';
  return isPlain && (href === issuerUrl || href === `${issuerUrl}/`) ? [] : [fault];
}

function refuseFaults(faults: readonly RefusalFault[]): void {
  if (faults.length > 0) throw new Refusal('definition_invalid', undefined, { faults });
}

/** Whether what is published, or will be next, lies above the revision. */
function isAbove({ revision, floorRevision, wholeNeeded }: RowOf<'site'>, aboveRevision: number): boolean {
  return revision > aboveRevision || (wholeNeeded === 1 && floorRevision >= aboveRevision);
}

function floorView({ id, revision, floorRevision }: RowOf<'site'>): SiteFloorView {
  return { site_id: id, revision, floor_revision: floorRevision };
}

/** What still stands on a site. @throws Refusal `still_in_use` */
async function refuseUse(tx: Transaction, siteId: string, nowSeconds: number): Promise<void> {
  const one: Page = { after: undefined, limit: 1 };
  const uses: readonly (readonly [what: string, rows: readonly unknown[]])[] = [
    ['attached targets', await tx.targets.attached(siteId)],
    ['clients', await tx.clients.list({ siteId }, one)],
    ['routes', await tx.routes.list({ siteId }, one)],
    ['brokers', await tx.brokers.list({ siteId }, one)],
    ['sources that hold a slot', await tx.sources.inStates(siteId, SOURCE_STATES.filter(holdsSlot))],
    ['enrollment policies', await tx.policies.ofSite(siteId, one)],
    ['living keys', await tx.keys.livingOfSite(siteId, nowSeconds, one)],
  ];
  const inUse = uses.filter(([, rows]) => rows.length > 0).map(([what]) => what);
  if (inUse.length > 0) throw new Refusal('still_in_use', `the site has ${inUse.join(', ')}`);
  await refuseHeldScope(tx, 'site', siteId);
}

function siteView(row: Omit<RowOf<'site'>, 'policyRevision' | 'uid'>, place: Place): SiteView {
  return {
    site_id: row.id,
    environment_id: place.environmentId ?? '',
    fleet_id: row.fleetId,
    display_name: row.displayName,
    trust_domain: row.trustDomain,
    issuer_url: row.issuerUrl,
    origins: originsOf(row),
    skew_seconds: row.skewSeconds,
    single_verifier: row.singleVerifier === 1,
    bundle_lifetime_seconds: row.bundleLifetimeSeconds,
    source_capacity: row.sourceCapacity,
    ...versionOf(row),
  };
}

/** As a site keeps them. */
export function originsOf({ origins }: Pick<RowOf<'site'>, 'origins'>): string[] {
  const stored: unknown = JSON.parse(origins);
  return Array.isArray(stored) ? stored.filter((origin) => typeof origin === 'string') : [];
}
