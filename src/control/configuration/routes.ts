/** Routes of a site. A route without allowed sources is stored, but not published. */

import { compileRoutes } from '../../bundle/compile/compile-routes.ts';
import { Faults } from '../../bundle/format/bundle-error.ts';
import { BUNDLE_FORMAT } from '../../bundle/format/bundle-limits.ts';
import type { BundleContent } from '../../bundle/format/schema.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { isCanonicalSubject, isCanonicalSubjectPrefix, SPIFFE_ID_RULE } from '../../protocol/spiffe-id.ts';
import {
  type AllowedSources,
  type NewRoute,
  ROUTE_DEFINITION,
  ROUTE_SOURCES_REPLACEMENT,
  type RouteDefinition,
  type RouteSourcesView,
  type RouteView,
} from '../contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { targetsWithout } from '../publishing/known-members.ts';
import {
  audited,
  type ConfigurationDeps,
  mutateEach,
  naming,
  newVersion,
  placeInSite,
  publishChange,
  requireRow,
  versionOf,
} from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { AuditEntry } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { originsOf } from './sites.ts';
import { storedDefinition } from './stored-definition.ts';

interface RouteName {
  readonly siteId: string;
  readonly routeId: string;
}

const readDefinition = storedDefinition(ROUTE_DEFINITION);

/** A route as read, and whether it has sources. */
export interface RouteInSite {
  readonly row: RowOf<'route'>;
  readonly published: boolean;
}

export interface RouteReplacement extends RouteInSite {
  readonly definition: RouteDefinition;
}

function routeView(row: RowOf<'route'>, published: boolean): RouteView {
  return {
    site_id: row.siteId,
    route_id: row.routeId,
    definition: readDefinition(row.definition),
    published,
    ...versionOf(row),
  };
}

export class Routes extends VersionedResource<'route', 'route', RouteView> {
  readonly #siteCheck: ConfigurationDeps['siteCheck'];

  constructor(deps: ConfigurationDeps) {
    super(deps, {
      audited: 'route',
      table: (tx) => tx.routes,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ routeId }) => routeId,
      view: async (tx, row) => routeView(row, await isPublished(tx, row)),
    });
    this.#siteCheck = deps.siteCheck;
  }

  list(siteId: string, page: Page): Promise<readonly RouteView[]> {
    return this.listRows((tx) => tx.routes.list({ siteId }, page));
  }

  /** @throws ApiProblem `already_exists`, `definition_invalid` */
  create(operation: Operation, siteId: string, route: NewRoute): Promise<Created<RouteView, never>> {
    const { route_id: routeId, definition } = route;
    return this.createRow(operation, siteLock([siteId]), async (tx, nowMs) => {
      if ((await tx.routes.find(siteId, routeId)) !== undefined) throw new ApiProblem('already_exists');
      await rejectFaultyRoute(tx, { siteId, routeId }, definition);
      // No publication needed: bundles leave out routes without sources.
      await tx.routes.add({ siteId, routeId, definition: JSON.stringify(definition), ...newVersion(nowMs) });
      return { name: [siteId, routeId] };
    });
  }

  /** Creates many that do not exist. @throws ApiProblem `definition_invalid`, naming the route */
  createAll(operation: Operation, siteId: string, routes: readonly NewRoute[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, routes, async (tx) => {
      const origins = originsOf(requireRow(await tx.sites.find(siteId)));
      const place = await placeInSite(tx, siteId);
      const entries: AuditEntry[] = [];
      for (const { route_id: routeId, definition } of routes) {
        naming(`route ${routeId}`, () => rejectFaultyDefinition({ siteId, routeId }, definition, origins));
        const version = newVersion(nowMs);
        const after = {
          site_id: siteId,
          route_id: routeId,
          definition,
          published: false,
          ...versionOf(version),
        };
        entries.push(audited(operation, { what: 'route.create', id: routeId, place, after }));
      }
      const withHeader = routes.find(({ definition }) => definition.passport_header !== undefined);
      if (withHeader !== undefined) await rejectUnknownMember(tx, siteId, withHeader.definition);
      const rows = routes.map(({ route_id: routeId, definition }) => ({
        ...{ siteId, routeId, definition: JSON.stringify(definition) },
        ...newVersion(nowMs),
      }));
      await tx.routes.addAll(rows);
      return entries;
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `definition_invalid` */
  replace(
    operation: Operation,
    name: RouteName,
    version: number,
    definition: RouteDefinition,
  ): Promise<RouteView> {
    const { siteId, routeId } = name;
    return this.changeRow(operation, [siteId, routeId], version, async (tx) => {
      await rejectFaultyRoute(tx, name, definition);
      const set = { definition: JSON.stringify(definition) };
      if (!(await isPublished(tx, name))) return { set };
      return { set, check: () => this.#siteCheck(tx, siteId), publish: { kind: 'policy' } };
    });
  }

  /** Replaces many, as read under the site's lock. @throws ApiProblem `definition_invalid`, naming the route */
  replaceAll(operation: Operation, siteId: string, routes: readonly RouteReplacement[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, routes, async (tx) => {
      const origins = originsOf(requireRow(await tx.sites.find(siteId)));
      for (const { row, definition } of routes) {
        const name = { siteId, routeId: row.routeId };
        naming(`route ${row.routeId}`, () => rejectFaultyDefinition(name, definition, origins));
      }
      const withHeader = routes.find(({ definition }) => definition.passport_header !== undefined);
      if (withHeader !== undefined) await rejectUnknownMember(tx, siteId, withHeader.definition);
      const rows = routes.map(({ row, definition }) => ({ ...row, definition: JSON.stringify(definition) }));
      await tx.routes.changeAll(rows, nowMs);
      if (routes.some(({ published }) => published)) {
        await this.#siteCheck(tx, siteId);
        await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
      }
      const place = await placeInSite(tx, siteId);
      return routes.map(({ row, published }, index) => {
        const next = { ...requireRow(rows[index]), version: row.version + 1, updatedAtMs: nowMs };
        const [before, after] = [routeView(row, published), routeView(next, published)];
        return audited(operation, { what: 'route.change', id: row.routeId, place, before, after });
      });
    });
  }

  /** Removes many with their sources, as read under the site's lock. */
  removeAll(operation: Operation, siteId: string, routes: readonly RouteInSite[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, routes, async (tx) => {
      const routeIds = routes.map(({ row }) => row.routeId);
      await tx.routeSources.removeAll(siteId, routeIds);
      await tx.routes.removeAll(siteId, routeIds);
      if (routes.some(({ published }) => published)) {
        await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
      }
      const place = await placeInSite(tx, siteId);
      return routes.map(({ row, published }) => {
        const before = routeView(row, published);
        return audited(operation, { what: 'route.delete', id: row.routeId, place, before });
      });
    });
  }

  /** Also removes its sources. @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, routeId], version, async (tx) => {
      const wasPublished = await tx.routeSources.remove(siteId, routeId);
      return wasPublished ? { publish: { kind: 'policy' } } : {};
    });
  }
}

async function isPublished(tx: Transaction, { siteId, routeId }: RouteName): Promise<boolean> {
  return (await tx.routeSources.find(siteId, routeId)) !== undefined;
}

/**
 * Compiles the route alone as a verifier would. The site check does not cover it while it has no sources.
 * @throws ApiProblem `definition_invalid` with each fault
 */
async function rejectFaultyRoute(
  tx: Transaction,
  name: RouteName,
  definition: RouteDefinition,
): Promise<void> {
  rejectFaultyDefinition(name, definition, originsOf(requireRow(await tx.sites.find(name.siteId))));
  await rejectUnknownMember(tx, name.siteId, definition);
}

function rejectFaultyDefinition(
  { siteId, routeId }: RouteName,
  definition: RouteDefinition,
  origins: string[],
): void {
  const faults = new Faults('definition');
  const content: BundleContent = {
    format: BUNDLE_FORMAT,
    auth_site: siteId,
    revision: 1,
    issued_at: formatTime(0),
    expires_at: formatTime(1),
    origins,
    routes: [{ route_id: routeId, ...definition }],
    route_sources: [{ route_id: routeId, allowed_sources: [] }],
  };
  compileRoutes(content, new Set(origins), faults);
  const error = faults.toError();
  if (error === undefined) return;
  throw new ApiProblem('definition_invalid', undefined, {
    faults: error.faults.map(({ path, text }) => ({
      pointer: path.replace(/^\/routes\/0/, '/body/definition'),
      reason: text,
    })),
  });
}

/**
 * A verifier that does not know `passport_header` would reject every later bundle, revocations included.
 * @throws ApiProblem `definition_invalid` with each attached target that does not know it
 */
async function rejectUnknownMember(
  tx: Transaction,
  siteId: string,
  { passport_header: header }: RouteDefinition,
): Promise<void> {
  const targets = header === undefined ? [] : await targetsWithout(tx, siteId, 'passport_header');
  if (targets.length === 0) return;
  throw new ApiProblem('definition_invalid', undefined, {
    faults: targets.map(({ name }) => ({
      pointer: '/body/definition/passport_header',
      reason: `the verifiers of target ${name} have not reported that they know it: upgrade them first`,
    })),
  });
}

/** Allowed sources of a route. A route is in bundles only while it has sources. */

const readSources = storedDefinition(ROUTE_SOURCES_REPLACEMENT.properties.allowed_sources);

export interface SourcesReplacement {
  readonly row: RowOf<'routeSources'>;
  readonly sources: AllowedSources;
}

function routeSourcesView(row: RowOf<'routeSources'>): RouteSourcesView {
  return {
    site_id: row.siteId,
    route_id: row.routeId,
    allowed_sources: readSources(row.allowedSources),
    ...versionOf(row),
  };
}

export class RouteSources extends VersionedResource<'route_sources', 'routeSources', RouteSourcesView> {
  readonly #siteCheck: ConfigurationDeps['siteCheck'];

  constructor(deps: ConfigurationDeps) {
    super(deps, {
      audited: 'route_sources',
      table: (tx) => tx.routeSources,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ routeId }) => routeId,
      view: (_tx, row) => routeSourcesView(row),
    });
    this.#siteCheck = deps.siteCheck;
  }

  /**
   * @param version the change is based on; undefined when the route has no sources yet
   * @throws ApiProblem `not_found` without the route, `precondition_required`, `precondition_failed`, `definition_invalid`
   */
  put(
    operation: Operation,
    { siteId, routeId }: RouteName,
    version: number | undefined,
    sources: AllowedSources,
  ) {
    return this.putRow(operation, [siteId, routeId], version, async (tx, _known, nowMs) => {
      const route = requireRow(await tx.routes.find(siteId, routeId));
      const allowedSources = JSON.stringify(sources);
      return {
        set: { allowedSources },
        add: async (first) => {
          await tx.routeSources.add({ siteId, routeId, allowedSources, ...first });
          // The route's view shows whether the route is published, so its version changes too.
          await tx.routes.change(route, {}, nowMs);
        },
        check: async () => {
          rejectOddSources(sources);
          await this.#siteCheck(tx, siteId);
        },
        publish: { kind: 'policy' },
      };
    });
  }

  /** Sets those of many routes that have none. Subjects are in canonical form already. @throws ApiProblem `definition_invalid` */
  createAll(
    operation: Operation,
    siteId: string,
    sets: readonly { readonly routeId: string; readonly sources: AllowedSources }[],
  ): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, sets, async (tx) => {
      const version = newVersion(nowMs);
      const rows = sets.map(({ routeId, sources }) => ({
        ...{ siteId, routeId, allowedSources: JSON.stringify(sources), ...version },
      }));
      await tx.routeSources.addAll(rows);
      // As in `put`: the views of the routes change.
      const routeIds = sets.map(({ routeId }) => routeId);
      await tx.publication.touchRoutes(siteId, routeIds, nowMs);
      await this.#siteCheck(tx, siteId);
      await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
      const place = await placeInSite(tx, siteId);
      return sets.map(({ routeId, sources }) => {
        const after = { site_id: siteId, route_id: routeId, allowed_sources: sources, ...versionOf(version) };
        return audited(operation, { what: 'route_sources.create', id: routeId, place, after });
      });
    });
  }

  /** Changes those of many routes, as read under the site's lock. Subjects are in canonical form already. @throws ApiProblem `definition_invalid` */
  changeAll(operation: Operation, siteId: string, changes: readonly SourcesReplacement[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, changes, async (tx) => {
      const rows = changes.map(({ row, sources }) => ({ ...row, allowedSources: JSON.stringify(sources) }));
      await tx.routeSources.changeAll(rows, nowMs);
      await this.#siteCheck(tx, siteId);
      await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
      const place = await placeInSite(tx, siteId);
      return changes.map(({ row }, index) => {
        const next = { ...requireRow(rows[index]), version: row.version + 1, updatedAtMs: nowMs };
        const [before, after] = [routeSourcesView(row), routeSourcesView(next)];
        return audited(operation, { what: 'route_sources.change', id: row.routeId, place, before, after });
      });
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, routeId], version, async (tx, _row, nowMs) => {
      const route = requireRow(await tx.routes.find(siteId, routeId));
      await tx.routes.change(route, {}, nowMs);
      return { publish: { kind: 'policy' } };
    });
  }
}

/**
 * Rejects subjects that are not in canonical form when they are written. Control still publishes older ones that it
 * stored before; verifiers load them, and they match no caller (docs/design/bundle.md "Rules that a load enforces").
 */

/** @throws ApiProblem `definition_invalid` */
function rejectOddSources(sources: AllowedSources): void {
  rejectNotCanonical(
    sources.flatMap(({ subject_exact: exact = '', subject_prefix: prefix = '' }, index) => [
      ...(isCanonicalSubject(exact) ? [] : [`/body/allowed_sources/${index}/subject_exact`]),
      ...(isCanonicalSubjectPrefix(prefix) ? [] : [`/body/allowed_sources/${index}/subject_prefix`]),
    ]),
  );
}

export function rejectNotCanonical(pointers: readonly string[]): void {
  if (pointers.length === 0) return;
  const faults = pointers.map((pointer) => ({ pointer, reason: `not ${SPIFFE_ID_RULE}` }));
  throw new ApiProblem('definition_invalid', undefined, { faults });
}
