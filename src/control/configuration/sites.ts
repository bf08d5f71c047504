/**
 * Auth Sites. Identifier, trust domain and issuer URL cannot change, because transcripts, passports and enrolled
 * workloads name them.
 */

import type { ProblemFault } from '../../process/http-service/http-problem.ts';
import { DEFAULT_SKEW_SECONDS } from '../../protocol/limits.ts';
import { parseOrigin } from '../../protocol/request-target.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import {
  DEFAULT_BUNDLE_LIFETIME_SECONDS,
  type NewSite,
  type SiteChange,
  type SiteFloorView,
  type SiteView,
} from '../contract/hierarchy-contract.ts';
import { DEFAULT_SOURCE_CAPACITY } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { Reach } from '../domain/roles.ts';
import { SLOT_STATES } from '../domain/source-states.ts';
import {
  audited,
  type ConfigurationDeps,
  INSTALLATION_LOCK,
  newVersion,
  ONE_ROW,
  placeInSite,
  requireRow,
  versionOf,
} from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { oneByOne, siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { rejectHeldScope } from './environments.ts';
import { endOf, observationOfSite, rejectFaultyEnd } from './observations.ts';
import { rejectOldTargets } from './old-targets.ts';
import { rejectSharedOrigins } from './shared-origins.ts';

/** Creates a new site's signing keys, in the transaction that creates the site. */
export type CreateSiteKeys = (tx: Transaction, siteId: string, nowMs: number) => Promise<unknown>;

export interface SitesDeps extends ConfigurationDeps {
  readonly createSiteKeys: CreateSiteKeys;
}

export class Sites extends VersionedResource<'site', 'site', SiteView> {
  readonly #deps: SitesDeps;

  constructor(deps: SitesDeps) {
    super(deps, {
      audited: 'site',
      table: (tx) => tx.sites,
      lock: siteLock,
      place: (tx, { id }) => placeInSite(tx, id),
      id: ({ id }) => id,
      views: oneByOne(siteView),
    });
    this.#deps = deps;
  }

  /** All sites within reach. */
  list(reach: Reach, page: Page): Promise<readonly SiteView[]> {
    return this.listRows((tx) => tx.hierarchy.reachedSites(reach, page));
  }

  listOfFleet(fleetId: string, page: Page): Promise<readonly SiteView[]> {
    return this.listRows((tx) => tx.sites.list({ fleetId }, page));
  }

  /** @throws ApiProblem `not_found` without the fleet, `already_exists` for a taken identifier or issuer, `definition_invalid` */
  async create(operation: Operation, fleetId: string, site: NewSite): Promise<Created<SiteView, never>> {
    rejectFaults([...originFaults(site.origins), ...issuerFaults(site.issuer_url)]);
    return this.createRow(operation, INSTALLATION_LOCK, async (tx, nowMs) => {
      requireRow(await tx.fleets.find(fleetId));
      if ((await tx.sites.find(site.site_id)) !== undefined) {
        throw new ApiProblem('already_exists', 'there is a site of that identifier');
      }
      rejectFaultyEnd(observationOfSite(site), Math.floor(nowMs / 1000));
      await rejectSharedOrigins(tx, site.site_id, site.origins);
      if (await tx.hierarchy.hasIssuerUrl(site.issuer_url)) {
        throw new ApiProblem('already_exists', 'another site has that issuer_url');
      }
      await tx.sites.add(newRow(fleetId, site, nowMs));
      await this.#deps.createSiteKeys(tx, site.site_id, nowMs);
      return { name: [site.site_id], publish: { kind: 'policy' } };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `definition_invalid`, `target_too_old` */
  async change(operation: Operation, id: string, version: number, change: SiteChange): Promise<SiteView> {
    rejectFaults(originFaults(change.origins ?? []));
    return this.changeRow(operation, [id], version, async (tx, _row, nowMs) => {
      rejectFaultyEnd(observationOfSite(change), Math.floor(nowMs / 1000));
      if (change.origins !== undefined) await rejectSharedOrigins(tx, id, change.origins);
      if (change.unmatched === 'observe') await rejectOldTargets(tx, id, ['enforcement']);
      const set = changedColumns(change);
      if (!isPublished(change)) return { set };
      return { set, check: () => this.#deps.siteCheck(tx, id), publish: { kind: 'policy' } };
    });
  }

  /** Publishes every later revision above this one. @throws ApiProblem `not_found` */
  async raiseFloor(operation: Operation, id: string, aboveRevision: number): Promise<SiteFloorView> {
    const { store } = this.#deps;
    const before = requireRow(await store.read((tx) => tx.sites.find(id)));
    if (isAbove(before, aboveRevision)) return floorView(before);
    return store.mutate(siteLock([id]), async (tx) => {
      const row = requireRow(await tx.sites.find(id));
      const place = await placeInSite(tx, id);
      const floorRevision = Math.max(row.floorRevision, aboveRevision);
      await tx.hierarchy.advance(id, { floorRevision, wholeNeeded: flag(true) });
      tx.notify({ topic: 'site_changed', reference: id });
      const after = floorView({ ...row, floorRevision });
      const change = { what: 'site.raise_floor', id, place, before: floorView(row), after } as const;
      return { result: after, audit: [audited(operation, change)] };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `still_in_use` while the site has dependent resources */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.removeRow(operation, [id], version, async (tx, _row, nowMs) => {
      await rejectUse(tx, id, Math.floor(nowMs / 1000));
      // Distribution rereads the site: a new site may reuse the identifier, and must not continue this chain.
      tx.notify({ topic: 'site_published', reference: id });
      return {};
    });
  }
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
    replayStores: site.replay_stores ?? 'one',
    unmatchedUntilSeconds: endOf(observationOfSite(site)),
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
    ...(change.replay_stores === undefined ? {} : { replayStores: change.replay_stores }),
    ...(change.unmatched === undefined ? {} : { unmatchedUntilSeconds: endOf(observationOfSite(change)) }),
  };
}

/** Whether the change affects bundles. */
function isPublished(change: SiteChange): boolean {
  const { display_name: _name, replay_stores: _stores, source_capacity: _capacity, ...published } = change;
  return Object.keys(published).length > 0;
}

function originFaults(origins: readonly string[]): readonly ProblemFault[] {
  return origins.flatMap((origin, index) =>
    parseOrigin(origin) === undefined
      ? [{ pointer: `/body/origins/${index}`, reason: 'not scheme://authority in canonical form' }]
      : [],
  );
}

/** Requires an absolute URL in the spelling that URL parsers write, with or without the trailing slash. */
function issuerFaults(issuerUrl: string): readonly ProblemFault[] {
  const fault = { pointer: '/body/issuer_url', reason: 'not an absolute URL in its normal spelling' };
  if (!URL.canParse(issuerUrl)) return [fault];
  const { href, username, password, search, hash } = new URL(issuerUrl);
  const isPlain = username === '' && password === '' && search === '' && hash === '';
  return isPlain && (href === issuerUrl || href === `${issuerUrl}/`) ? [] : [fault];
}

function rejectFaults(faults: readonly ProblemFault[]): void {
  if (faults.length > 0) throw new ApiProblem('definition_invalid', undefined, { faults });
}

/** Whether the current revision, or the next one, lies above `aboveRevision`. */
function isAbove({ revision, floorRevision, wholeNeeded }: RowOf<'site'>, aboveRevision: number): boolean {
  return revision > aboveRevision || (wholeNeeded === 1 && floorRevision >= aboveRevision);
}

function floorView({ id, revision, floorRevision }: RowOf<'site'>): SiteFloorView {
  return { site_id: id, revision, floor_revision: floorRevision };
}

/** Rejects the removal of a site with dependent resources. @throws ApiProblem `still_in_use` */
async function rejectUse(tx: Transaction, siteId: string, nowSeconds: number): Promise<void> {
  const uses: readonly (readonly [what: string, rows: readonly unknown[]])[] = [
    ['attached targets', await tx.targets.attached(siteId)],
    ['clients', await tx.clients.list({ siteId }, ONE_ROW)],
    ['routes', await tx.routes.list({ siteId }, ONE_ROW)],
    ['brokers', await tx.brokers.list({ siteId }, ONE_ROW)],
    ['sources that hold a slot', await tx.sources.inStates(siteId, SLOT_STATES)],
    ['enrollment policies', await tx.policies.ofSite(siteId, ONE_ROW)],
    ['living keys', await tx.keys.livingOfSite(siteId, nowSeconds, ONE_ROW)],
  ];
  const inUse = uses.filter(([, rows]) => rows.length > 0).map(([what]) => what);
  if (inUse.length > 0) throw new ApiProblem('still_in_use', `the site has ${inUse.join(', ')}`);
  await rejectHeldScope(tx, 'site', siteId);
}

async function siteView(tx: Transaction, row: RowOf<'site'>): Promise<SiteView> {
  const { environmentId = '' } = await placeInSite(tx, row.id);
  return {
    site_id: row.id,
    environment_id: environmentId,
    fleet_id: row.fleetId,
    display_name: row.displayName,
    trust_domain: row.trustDomain,
    issuer_url: row.issuerUrl,
    origins: originsOf(row),
    skew_seconds: row.skewSeconds,
    single_verifier: row.singleVerifier === 1,
    bundle_lifetime_seconds: row.bundleLifetimeSeconds,
    source_capacity: row.sourceCapacity,
    replay_stores: row.replayStores,
    ...unmatchedView(row),
    ...versionOf(row),
  };
}

/** Members of an observation of requests that no route matches; an ended one is still shown. */
export function unmatchedView({
  unmatchedUntilSeconds: until,
}: Pick<RowOf<'site'>, 'unmatchedUntilSeconds'>) {
  return until === null
    ? { unmatched: 'deny' as const }
    : { unmatched: 'observe' as const, unmatched_until: formatTime(until) };
}

/** Parses the stored list of a site's origins. */
export function originsOf({ origins }: Pick<RowOf<'site'>, 'origins'>): string[] {
  const stored: unknown = JSON.parse(origins);
  return Array.isArray(stored) ? stored.filter((origin) => typeof origin === 'string') : [];
}
