/** Allowed sources of a route. A route is in bundles only while it has sources. */
import {
  type AllowedSources,
  ROUTE_SOURCES_REPLACEMENT,
  type RouteSourcesView,
} from '../../api-contract/routes-contract.ts';
import type { Operation } from '../operation.ts';
import { refuseOddSources } from './canonical-subjects.ts';
import { type ConfigurationDeps, found, placeInSite, versionOf } from './change.ts';
import type { RouteName } from './routes.ts';
import { storedDefinition } from './stored-definition.ts';
import { siteLock, VersionedResource } from './versioned-resource.ts';

const readSources = storedDefinition(ROUTE_SOURCES_REPLACEMENT.properties.allowed_sources);

export class RouteSources extends VersionedResource<'route_sources', 'routeSources', RouteSourcesView> {
  readonly #siteCheck: ConfigurationDeps['siteCheck'];

  constructor(deps: ConfigurationDeps) {
    super(deps, {
      audited: 'route_sources',
      table: (tx) => tx.routeSources,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ routeId }) => routeId,
      view: (_tx, row) => ({
        site_id: row.siteId,
        route_id: row.routeId,
        allowed_sources: readSources(row.allowedSources),
        ...versionOf(row),
      }),
    });
    this.#siteCheck = deps.siteCheck;
  }

  /**
   * @param version the change is based on; undefined when the route has no sources yet
   * @throws Refusal `not_found` without the route, `precondition_required`, `precondition_failed`, `definition_invalid`
   */
  put(
    operation: Operation,
    { siteId, routeId }: RouteName,
    version: number | undefined,
    sources: AllowedSources,
  ) {
    return this.putRow(operation, [siteId, routeId], version, async (tx, _known, nowMs) => {
      const route = found(await tx.routes.find(siteId, routeId));
      const allowedSources = JSON.stringify(sources);
      return {
        set: { allowedSources },
        add: async (first) => {
          await tx.routeSources.add({ siteId, routeId, allowedSources, ...first });
          // The route's view shows whether the route is published, so its version changes too.
          await tx.routes.change(route, {}, nowMs);
        },
        check: async () => {
          refuseOddSources(sources);
          await this.#siteCheck(tx, siteId);
        },
        publish: { kind: 'policy' },
      };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, routeId }: RouteName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, routeId], version, async (tx, _row, nowMs) => {
      const route = found(await tx.routes.find(siteId, routeId));
      await tx.routes.change(route, {}, nowMs);
      return { publish: { kind: 'policy' } };
    });
  }
}
