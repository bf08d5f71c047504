/** Routes of a site. A route is kept before anybody may call it, and published once it has sources. */
import { compileRoutes } from '../../bundle/compile-routes.ts';
import { Faults } from '../../bundle/errors.ts';
import { BUNDLE_FORMAT } from '../../bundle/limits.ts';
import type { BundleContent } from '../../bundle/schema.ts';
import { formatTime } from '../../bundle/times.ts';
import {
  type NewRoute,
  ROUTE_DEFINITION,
  type RouteDefinition,
  type RouteView,
} from '../api/contract/routes.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import {
  audited,
  type ConfigurationDeps,
  found,
  newVersion,
  nextVersion,
  publishChange,
  requireVersion,
  versionOf,
} from './change.ts';
import { originsOf } from './sites.ts';
import { storedDefinition } from './stored-definition.ts';

export interface RouteName {
  readonly siteId: string;
  readonly routeId: string;
}

export class Routes {
  readonly #deps: ConfigurationDeps;

  constructor(deps: ConfigurationDeps) {
    this.#deps = deps;
  }

  list(siteId: string, page: Page): Promise<readonly RouteView[]> {
    return this.#deps.store.read(async (tx) => {
      const views: RouteView[] = [];
      for (const row of await tx.routes.list({ siteId }, page)) views.push(await viewOf(tx, row));
      return views;
    });
  }

  get({ siteId, routeId }: RouteName): Promise<RouteView> {
    return this.#deps.store.read(async (tx) => viewOf(tx, found(await tx.routes.find(siteId, routeId))));
  }

  /** @throws Refusal `already_exists`, `definition_invalid` */
  create(operation: Operation, siteId: string, route: NewRoute): Promise<Created<RouteView, never>> {
    const { store, nowMs } = this.#deps;
    const { route_id: routeId, definition } = route;
    const now = nowMs();
    return createOnce(store, { kind: 'site', siteId }, operation, now, async (tx) => {
      if ((await tx.routes.find(siteId, routeId)) !== undefined) throw new Refusal('already_exists');
      await refuseFaultyRoute(tx, { siteId, routeId }, definition);
      const row = { siteId, routeId, definition: JSON.stringify(definition), ...newVersion(now) };
      // Without sources bundles do not hold it: nothing to publish yet.
      await tx.routes.add(row);
      const after = routeView(row, false);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      return {
        result: after,
        audit: [audited(operation, { what: 'route.create', id: routeId, place, after })],
      };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `definition_invalid` */
  replace(
    operation: Operation,
    name: RouteName,
    version: number,
    definition: RouteDefinition,
  ): Promise<RouteView> {
    const { store, nowMs, siteCheck } = this.#deps;
    const { siteId, routeId } = name;
    const now = nowMs();
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = found(await tx.routes.find(siteId, routeId));
      requireVersion(row, version);
      await refuseFaultyRoute(tx, name, definition);
      const before = await viewOf(tx, row);
      const text = JSON.stringify(definition);
      await tx.routes.change(row, { definition: text }, now);
      if (before.published) {
        await siteCheck(tx, siteId);
        await publishChange(tx, siteId, { kind: 'policy' }, now);
      }
      const after = routeView({ ...row, definition: text, ...nextVersion(row, now) }, before.published);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const entry = audited(operation, { what: 'route.change', id: routeId, place, before, after });
      return { result: after, audit: [entry] };
    });
  }

  /** With its sources. @throws Refusal `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    const { store, nowMs } = this.#deps;
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = found(await tx.routes.find(siteId, routeId));
      requireVersion(row, version);
      const before = await viewOf(tx, row);
      await tx.routeSources.remove(siteId, routeId);
      await tx.routes.remove(siteId, routeId);
      if (before.published) await publishChange(tx, siteId, { kind: 'policy' }, nowMs());
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const entry = audited(operation, { what: 'route.delete', id: routeId, place, before });
      return { result: undefined, audit: [entry] };
    });
  }
}

/**
 * Compiles the one route as a verifier would: a route without sources is in no bundle, so nothing else looks at it yet.
 * @throws Refusal `definition_invalid`, fault by fault
 */
async function refuseFaultyRoute(
  tx: Transaction,
  { siteId, routeId }: RouteName,
  definition: RouteDefinition,
): Promise<void> {
  const origins = originsOf(found(await tx.sites.find(siteId)));
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
  throw new Refusal('definition_invalid', undefined, {
    faults: error.faults.map(({ path, text }) => ({
      pointer: path.replace(/^\/routes\/0/, '/body/definition'),
      reason: text,
    })),
  });
}

const readDefinition = storedDefinition(ROUTE_DEFINITION);

async function viewOf(tx: Transaction, row: RowOf<'route'>): Promise<RouteView> {
  return routeView(row, (await tx.routeSources.find(row.siteId, row.routeId)) !== undefined);
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
