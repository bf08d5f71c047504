/** Control's current configuration of a site, as far as a site file can declare it. Records are the API's views. */
import type { JsonObject } from '../../protocol/strict-json.ts';

export interface CurrentSite {
  readonly environmentId: string | undefined;
  readonly fleetId: string | undefined;
  readonly site: JsonObject | undefined;
  /** By issuer. */
  readonly brokers: Records;
  /** By client_id. */
  readonly clients: Records;
  /** Access by client_id, then by resource. */
  readonly grants: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** By route_id. */
  readonly routes: Records;
  /** Views of source sets, by route_id. */
  readonly routeSources: Records;
  /** By display name, with revisions. */
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
