/** Reads Control's configuration of the site that a file declares. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { ControlApi } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { sitePath } from './paths.ts';
import { brokerName, type CurrentSite, NOTHING, type Records, type SiteFile } from './site-file.ts';

/** @throws OperatorError */
export async function readCurrentSite(api: ControlApi, file: SiteFile): Promise<CurrentSite> {
  const path = sitePath(file.site.site_id);
  const site = await api.find(path);
  if (site !== undefined) await refuseElsewhere(api, file, site.body);
  const environmentId = await idByName(api, '/v1/environments', file.environment, 'environment_id');
  if (environmentId === undefined) return NOTHING;
  const fleets = `/v1/environments/${environmentId}/fleets`;
  const fleetId = await idByName(api, fleets, file.fleet, 'fleet_id');
  if (fleetId === undefined) return { ...NOTHING, environmentId };
  if (site === undefined) return { ...NOTHING, environmentId, fleetId };
  const clients = byMember(await api.list(`${path}/clients`), 'client_id');
  const routes = byMember((await api.list(`${path}/routes`)).map(withDefinition), 'route_id');
  const policies = await api.list(`${path}/enrollment-policies`);
  const targets = await api.list(`${path}/targets`);
  return {
    environmentId,
    fleetId,
    site: site.body,
    brokers: new Map(
      (await api.list(`${path}/brokers`)).map(withDefinition).map((each) => [brokerName(each), each]),
    ),
    clients,
    grants: await readGrants(api, path, clients),
    routes,
    routeSources: await readRouteSources(api, path, routes),
    sources: byMember(await api.list(`${path}/sources`), 'display_name', isNotOver),
    policies: byMember(policies, 'display_name', ({ state }) => state !== 'deleted'),
    targets: byMember(targets, 'name', ({ state }) => state === 'attached'),
  };
}

/** Rejects another environment or fleet: a site cannot move, and the new one would be created and stay empty. */
async function refuseElsewhere(
  api: ControlApi,
  { environment, fleet }: SiteFile,
  site: JsonObject,
): Promise<void> {
  const held = {
    environment: (await api.get(`/v1/environments/${String(site.environment_id)}`)).body.name,
    fleet: (await api.get(`/v1/fleets/${String(site.fleet_id)}`)).body.name,
  };
  if (held.environment === environment && held.fleet === fleet) return;
  const where = `environment ${String(held.environment)}, fleet ${String(held.fleet)}`;
  throw new OperatorError('usage', 'member_fixed', `the site is in ${where} and cannot move: declare those`);
}

/** Members of a definition without its name, as in a site file. */
function withDefinition(view: JsonObject): JsonObject {
  return isJsonObject(view.definition) ? { ...view, ...view.definition } : view;
}

async function idByName(
  api: ControlApi,
  path: string,
  name: string,
  idMember: string,
): Promise<string | undefined> {
  const found = (await api.list(path)).find((each) => each.name === name)?.[idMember];
  return typeof found === 'string' ? found : undefined;
}

function byMember(
  items: readonly JsonObject[],
  member: string,
  accepts: (item: JsonObject) => boolean = () => true,
): Records {
  return new Map(items.filter(accepts).map((item) => [String(item[member]), item]));
}

/** Ignores a source whose revisions are all retired: a declared source of the same name is a new one. */
function isNotOver({ revisions }: JsonObject): boolean {
  return !Array.isArray(revisions) || revisions.some(({ state }: JsonObject) => state !== 'retired');
}

async function readGrants(
  api: ControlApi,
  path: string,
  clients: Records,
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const grants = new Map<string, ReadonlyMap<string, string>>();
  for (const clientId of clients.keys()) {
    const items = await api.list(`${path}/clients/${encodeURIComponent(clientId)}/grants`);
    grants.set(clientId, new Map(items.map(({ resource, access }) => [String(resource), String(access)])));
  }
  return grants;
}

async function readRouteSources(api: ControlApi, path: string, routes: Records): Promise<Records> {
  const sets = new Map<string, JsonObject>();
  for (const routeId of routes.keys()) {
    const set = await api.find(`${path}/routes/${encodeURIComponent(routeId)}/sources`);
    if (set !== undefined) sets.set(routeId, set.body);
  }
  return sets;
}
