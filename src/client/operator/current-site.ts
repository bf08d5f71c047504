/** What Control holds of a site now, as far as a site file can declare it. Records are the API's views. */
import type { JsonObject } from '../../protocol/strict-json.ts';

export interface CurrentSite {
  readonly environmentId: string | undefined;
  readonly fleetId: string | undefined;
  readonly site: JsonObject | undefined;
  /** By issuer. */
  readonly brokers: Records;
  /** By client_id. */
  readonly clients: Records;
  /** By client_id, then resource: the access. */
  readonly grants: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** By route_id. */
  readonly routes: Records;
  /** By route_id: the views of their source sets. */
  readonly routeSources: Records;
  /** By display name; with their revisions. */
  readonly sources: Records;
  /** By display name. */
  readonly policies: Records;
  /** By name; attached ones only. */
  readonly targets: Records;
}

export type Records = ReadonlyMap<string, JsonObject>;

export const NOTHING: CurrentSite = {
  environmentId: undefined,
  fleetId: undefined,
  site: undefined,
  brokers: new Map(),
  clients: new Map(),
  grants: new Map(),
  routes: new Map(),
  routeSources: new Map(),
  sources: new Map(),
  policies: new Map(),
  targets: new Map(),
};
