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
  type CheckOne,
  type ConfigurationDeps,
  checkNamed,
  checkUnnamed,
  newVersion,
  placeInSite,
  requireRow,
  versionOf,
} from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { type Consequences, siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { endOf, observationOfRoute, rejectFaultyEnd } from './observations.ts';
import { membersOfRoute, rejectOldTargets } from './old-targets.ts';
import { rejectSharedByRoutes } from './shared-origins.ts';
import { originsOf } from './sites.ts';
import { storedDefinition } from './stored-definition.ts';

interface RouteName {
  readonly siteId: string;
  readonly routeId: string;
}

const readDefinition = storedDefinition(ROUTE_DEFINITION);

/** A route as read, and its replacement. */
export interface RouteReplacement {
  readonly row: RowOf<'route'>;
  readonly definition: RouteDefinition;
}

async function routeViews(tx: Transaction, rows: readonly RowOf<'route'>[]): Promise<readonly RouteView[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const names = rows.map(({ routeId }) => routeId);
  const published = await tx.publication.publishedRoutes(first.siteId, names);
  return rows.map((row) => ({
    site_id: row.siteId,
    route_id: row.routeId,
    definition: readDefinition(row.definition),
    published: published.has(row.routeId),
    ...versionOf(row),
  }));
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
      views: routeViews,
    });
    this.#siteCheck = deps.siteCheck;
  }

  list(siteId: string, page: Page): Promise<readonly RouteView[]> {
    return this.listRows((tx) => tx.routes.list({ siteId }, page));
  }

  /** @throws ApiProblem `already_exists`, `definition_invalid` */
  create(operation: Operation, siteId: string, route: NewRoute): Promise<Created<RouteView, never>> {
    const { route_id: routeId } = route;
    return this.createRow(operation, siteLock([siteId]), async (tx, nowMs) => {
      if ((await tx.routes.find(siteId, routeId)) !== undefined) throw new ApiProblem('already_exists');
      await tx.routes.addAll(await newRoutes(tx, siteId, [route], nowMs, checkUnnamed));
      return { name: [siteId, routeId] };
    });
  }

  /** Creates many routes that do not exist. @throws ApiProblem `definition_invalid`, naming the route */
  createAll(operation: Operation, siteId: string, routes: readonly NewRoute[]): Promise<void> {
    return this.createRows(operation, siteId, routes, async (tx, nowMs) => ({
      rows: await newRoutes(tx, siteId, routes, nowMs, checkNamed),
    }));
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `definition_invalid` */
  replace(
    operation: Operation,
    { siteId, routeId }: RouteName,
    version: number,
    definition: RouteDefinition,
  ): Promise<RouteView> {
    return this.changeRow(operation, [siteId, routeId], version, async (tx, _row, nowMs) => ({
      set: definitionColumns(definition),
      ...(await this.#consequencesOf(tx, siteId, [{ route_id: routeId, definition }], nowMs, checkUnnamed)),
    }));
  }

  /**
   * Replaces many routes that are unchanged since they were read.
   * @throws ApiProblem `definition_invalid`, naming the route
   */
  replaceAll(operation: Operation, siteId: string, routes: readonly RouteReplacement[]): Promise<void> {
    const rows = routes.map(({ row }) => row);
    const named = routes.map(({ row, definition }) => ({ route_id: row.routeId, definition }));
    return this.changeRows(operation, siteId, rows, async (tx, nowMs) => ({
      rows: routes.map(({ row, definition }) => ({ ...row, ...definitionColumns(definition) })),
      ...(await this.#consequencesOf(tx, siteId, named, nowMs, checkNamed)),
    }));
  }

  /** Returns the consequences of new definitions. @throws ApiProblem `definition_invalid` */
  async #consequencesOf(
    tx: Transaction,
    siteId: string,
    routes: readonly NewRoute[],
    nowMs: number,
    check: CheckOne,
  ): Promise<Consequences> {
    await rejectFaultyRoutes(tx, siteId, routes, nowMs, check);
    const published = await tx.publication.publishedRoutes(
      siteId,
      routes.map(({ route_id: routeId }) => routeId),
    );
    if (published.size === 0) return {};
    return { check: () => this.#siteCheck(tx, siteId), publish: { kind: 'policy' } };
  }

  /** Also removes its sources. @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, routeId], version, (tx) =>
      removeSourcesOf(tx, siteId, [routeId]),
    );
  }

  /** Removes many routes, with their sources, that are unchanged since they were read. */
  removeAll(operation: Operation, siteId: string, rows: readonly RowOf<'route'>[]): Promise<void> {
    const routeIds = rows.map(({ routeId }) => routeId);
    return this.removeRows(operation, siteId, rows, (tx) => removeSourcesOf(tx, siteId, routeIds));
  }
}

/** No publication is needed: bundles leave out routes without sources. @throws ApiProblem `definition_invalid` */
async function newRoutes(
  tx: Transaction,
  siteId: string,
  routes: readonly NewRoute[],
  nowMs: number,
  check: CheckOne,
): Promise<readonly RowOf<'route'>[]> {
  await rejectFaultyRoutes(tx, siteId, routes, nowMs, check);
  return routes.map(({ route_id: routeId, definition }) => ({
    ...{ siteId, routeId, ...definitionColumns(definition) },
    ...newVersion(nowMs),
  }));
}

function definitionColumns(definition: RouteDefinition) {
  const observeUntilSeconds = endOf(observationOfRoute(definition));
  return { definition: JSON.stringify(definition), observeUntilSeconds };
}

async function removeSourcesOf(
  tx: Transaction,
  siteId: string,
  routeIds: readonly string[],
): Promise<Consequences> {
  const published = await tx.publication.publishedRoutes(siteId, routeIds);
  await tx.routeSources.removeAll(siteId, routeIds);
  return published.size === 0 ? {} : { publish: { kind: 'policy' } };
}

/**
 * Compiles each route alone as a verifier would. The site check does not cover routes while they have no sources.
 * @throws ApiProblem `definition_invalid` with each fault of the first faulty route, `target_too_old`
 */
async function rejectFaultyRoutes(
  tx: Transaction,
  siteId: string,
  routes: readonly NewRoute[],
  nowMs: number,
  check: CheckOne,
): Promise<void> {
  const origins = originsOf(requireRow(await tx.sites.find(siteId)));
  const nowSeconds = Math.floor(nowMs / 1000);
  for (const route of routes) {
    check(`route ${route.route_id}`, () => {
      rejectFaultyDefinition(siteId, route, origins);
      rejectFaultyEnd(observationOfRoute(route.definition), nowSeconds);
    });
  }
  await rejectOldTargets(
    tx,
    siteId,
    routes.flatMap(({ definition }) => membersOfRoute(definition)),
  );
  await rejectSharedByRoutes(tx, siteId, origins, routes, check);
  const hasHeader = routes.some(({ definition }) => definition.passport_header !== undefined);
  if (hasHeader) await rejectUnknownHeader(tx, siteId);
}

function rejectFaultyDefinition(
  siteId: string,
  { route_id: routeId, definition }: NewRoute,
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
    routes: [{ route_id: routeId, ...enforced(definition) }],
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

/** As a bundle without observations contains it. */
function enforced({ enforcement: _, observe_until: __, ...definition }: RouteDefinition) {
  return definition;
}

/**
 * A verifier that does not know `passport_header` would reject every later bundle, revocations included.
 * @throws ApiProblem `definition_invalid` with each attached target that does not know it
 */
async function rejectUnknownHeader(tx: Transaction, siteId: string): Promise<void> {
  const targets = await targetsWithout(tx, siteId, 'passport_header');
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

/** A route with its new sources. */
export interface SourcesOfRoute {
  readonly routeId: string;
  readonly sources: AllowedSources;
}

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
      views: (_tx, rows) => rows.map(routeSourcesView),
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
      requireRow(await tx.routes.find(siteId, routeId));
      const allowedSources = JSON.stringify(sources);
      return {
        set: { allowedSources },
        add: async (first) => {
          await tx.routeSources.add({ siteId, routeId, allowedSources, ...first });
          await touchRoutes(tx, siteId, [routeId], nowMs);
        },
        ...this.#written(tx, siteId, [{ routeId, sources }], checkUnnamed),
      };
    });
  }

  /** Sets the sources of many routes without sources. @throws ApiProblem `definition_invalid`, naming the route */
  createAll(operation: Operation, siteId: string, sets: readonly SourcesOfRoute[]): Promise<void> {
    return this.createRows(operation, siteId, sets, async (tx, nowMs) => {
      const routeIds = sets.map(({ routeId }) => routeId);
      await touchRoutes(tx, siteId, routeIds, nowMs);
      const rows = sets.map(({ routeId, sources }) => ({
        ...{ siteId, routeId, allowedSources: JSON.stringify(sources) },
        ...newVersion(nowMs),
      }));
      return { rows, ...this.#written(tx, siteId, sets, checkNamed) };
    });
  }

  /**
   * Changes the sources of many routes, if unchanged since they were read.
   * @throws ApiProblem `definition_invalid`, naming the route
   */
  changeAll(operation: Operation, siteId: string, changes: readonly SourcesReplacement[]): Promise<void> {
    const rows = changes.map(({ row }) => row);
    const sets = changes.map(({ row, sources }) => ({ routeId: row.routeId, sources }));
    return this.changeRows(operation, siteId, rows, async (tx) => ({
      rows: changes.map(({ row, sources }) => ({ ...row, allowedSources: JSON.stringify(sources) })),
      ...this.#written(tx, siteId, sets, checkNamed),
    }));
  }

  #written(
    tx: Transaction,
    siteId: string,
    sets: readonly SourcesOfRoute[],
    checkOne: CheckOne,
  ): Consequences {
    const check = async () => {
      for (const { routeId, sources } of sets) {
        checkOne(`route ${routeId}`, () => rejectOddSources(sources));
      }
      await this.#siteCheck(tx, siteId);
    };
    return { check, publish: { kind: 'policy' } };
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, routeId], version, async (tx, _row, nowMs) => {
      await touchRoutes(tx, siteId, [routeId], nowMs);
      return { publish: { kind: 'policy' } };
    });
  }
}

/** The view of a route shows whether it is published, so its version changes with its first and without its last sources. */
function touchRoutes(tx: Transaction, siteId: string, routeIds: readonly string[], nowMs: number) {
  return tx.publication.touchRoutes(siteId, routeIds, nowMs);
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
