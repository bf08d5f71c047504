/** Who may call a route. Its first sources put a route into bundles; taking them away takes it out. */
import {
  type AllowedSources,
  ROUTE_SOURCES_REPLACEMENT,
  type RouteSourcesView,
} from '../api/contract/routes.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Operation } from '../operation.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { refuseOddSources } from './canonical-subjects.ts';
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
import type { RouteName } from './routes.ts';
import { storedDefinition } from './stored-definition.ts';

export class RouteSources {
  readonly #deps: ConfigurationDeps;

  constructor(deps: ConfigurationDeps) {
    this.#deps = deps;
  }

  async get({ siteId, routeId }: RouteName): Promise<RouteSourcesView> {
    return sourcesView(found(await this.#deps.store.read((tx) => tx.routeSources.find(siteId, routeId))));
  }

  /**
   * @param version that the change was made from; undefined to give a route its first sources
   * @throws Refusal `not_found` without the route, `precondition_required`, `precondition_failed`, `definition_invalid`
   */
  put(
    operation: Operation,
    { siteId, routeId }: RouteName,
    version: number | undefined,
    sources: AllowedSources,
  ): Promise<{ readonly view: RouteSourcesView; readonly created: boolean }> {
    const { store, nowMs, siteCheck } = this.#deps;
    const now = nowMs();
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const route = found(await tx.routes.find(siteId, routeId));
      const known = await tx.routeSources.find(siteId, routeId);
      const allowedSources = JSON.stringify(sources);
      const row = await write(tx, { siteId, routeId, allowedSources }, { known, version, nowMs: now });
      // The route's own view says whether it is published.
      if (known === undefined) await tx.routes.change(route, {}, now);
      refuseOddSources(sources);
      await siteCheck(tx, siteId);
      await publishChange(tx, siteId, { kind: 'policy' }, now);
      const after = sourcesView(row);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const what = known === undefined ? 'route_sources.create' : 'route_sources.change';
      const before = known && sourcesView(known);
      const entry = audited(operation, { what, id: routeId, place, ...(before && { before }), after });
      return { result: { view: after, created: known === undefined }, audit: [entry] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    const { store, nowMs } = this.#deps;
    const now = nowMs();
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const route = found(await tx.routes.find(siteId, routeId));
      const row = found(await tx.routeSources.find(siteId, routeId));
      requireVersion(row, version);
      await tx.routeSources.remove(siteId, routeId);
      await tx.routes.change(route, {}, now);
      await publishChange(tx, siteId, { kind: 'policy' }, now);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const before = sourcesView(row);
      const entry = audited(operation, { what: 'route_sources.delete', id: routeId, place, before });
      return { result: undefined, audit: [entry] };
    });
  }
}

async function write(
  tx: Transaction,
  content: Pick<RowOf<'routeSources'>, 'siteId' | 'routeId' | 'allowedSources'>,
  state: {
    readonly known: RowOf<'routeSources'> | undefined;
    readonly version: number | undefined;
    readonly nowMs: number;
  },
): Promise<RowOf<'routeSources'>> {
  const { known, version, nowMs } = state;
  if (known === undefined) {
    if (version !== undefined) throw new Refusal('precondition_failed');
    const row = { ...content, ...newVersion(nowMs) };
    await tx.routeSources.add(row);
    return row;
  }
  if (version === undefined) throw new Refusal('precondition_required');
  requireVersion(known, version);
  await tx.routeSources.change(known, { allowedSources: content.allowedSources }, nowMs);
  return { ...content, ...nextVersion(known, nowMs) };
}

const readSources = storedDefinition(ROUTE_SOURCES_REPLACEMENT.properties.allowed_sources);

function sourcesView(row: RowOf<'routeSources'>): RouteSourcesView {
  return {
    site_id: row.siteId,
    route_id: row.routeId,
    allowed_sources: readSources(row.allowedSources),
    ...versionOf(row),
  };
}
