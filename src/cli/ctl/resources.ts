/** Lists Control's resources, and finds one by its ID or its name. */
import type { ControlApi, Resource } from '../../client/operator/control-api.ts';
import { CliError, usageError } from '../../program/errors.ts';
import { integer, optional, text } from '../../program/settings.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { KINDS, type Kind } from './kinds.ts';

/** Setting of commands that take an ID or a name. */
export const SITE_OF_NAME = {
  site: optional(text('--site <site>', 'Auth Site, to give a name in place of an ID')),
};

/** All resources of a kind: of the site, or everything that the operator may read. */
export async function listOf(
  api: ControlApi,
  kindName: string,
  site: string | undefined,
): Promise<readonly JsonObject[]> {
  const { list, isOnePage, newestOnly }: Kind = KINDS[kindName] ?? { needsSite: 'never', columns: [] };
  if (list === undefined) return [];
  if (kindName === 'fleets') {
    const environments = await api.list('/v1/environments');
    const ids = environments.map(({ environment_id: id }) => encodeURIComponent(String(id)));
    return (await Promise.all(ids.map((id) => api.list(list(id))))).flat();
  }
  const path = list(encodeURIComponent(site ?? ''));
  if (newestOnly) return api.newest(path);
  if (!isOnePage) return api.list(path);
  const { items } = (await api.get(path)).body;
  return Array.isArray(items) ? items.filter(isJsonObject) : [];
}

/**
 * The ID of the resource with this ID or name.
 * @throws CliError `site_required`, `not_found`, `name_ambiguous`
 */
export async function idOf(
  api: ControlApi,
  kindName: string,
  given: string,
  site: string | undefined,
): Promise<string> {
  const kind = KINDS[kindName];
  if (kind?.named === undefined || given.startsWith(kind.named.prefix)) return given;
  const { prefix, member } = kind.named;
  if (kind.needsSite !== 'never' && site === undefined) {
    throw usageError('site_required', `${given} is no ID (${prefix}…): name its Auth Site with --site`);
  }
  const found = (await listOf(api, kindName, site)).filter((each) => each[member] === given);
  // The name of a detached target may be in use again.
  const living = found.filter(({ state }) => state !== 'detached');
  const ids = (living.length > 0 ? living : found).map((each) => String(each[kind.columns[0] ?? '']));
  const [id, another] = ids;
  const where = kind.needsSite === 'never' ? '' : ` --site ${site}`;
  const list = `proofgate ctl get ${kindName}${where}`;
  if (id === undefined) {
    throw new CliError('refused', 'not_found', `none of the ${kindName} is named ${given}: see ${list}`);
  }
  if (another === undefined) return id;
  throw usageError('name_ambiguous', `several ${kindName} are named ${given}; give an ID: ${ids.join(', ')}`);
}

/** Settings of commands that change one version of a resource. */
export const IF_VERSION = {
  ifVersion: optional(
    integer('--if-version <version>', 'only if it still has the version that `get` showed', {
      min: 1,
      max: Number.MAX_SAFE_INTEGER,
    }),
  ),
};

/** ETag of the version that the operator names; by default that of the resource as it is now. */
export function expectedTag({ etag }: Resource, ifVersion: number | undefined): string | undefined {
  return ifVersion === undefined ? etag : `"${ifVersion}"`;
}
