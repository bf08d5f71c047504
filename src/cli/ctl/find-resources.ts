/** Lists Control's resources, and finds one by its ID or its name. */

import { CliError, usageError } from '../../process/program/errors.ts';
import { optional, text } from '../../process/settings/settings.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import type { ControlApi } from './client/control-api.ts';
import { OperatorError } from './client/operator-error.ts';
import { type PathInput, pathWith } from './client/paths.ts';
import { KINDS, type NamedKind } from './resource-kinds.ts';

/** Setting of commands that take an ID or a name. */
export const SITE_OF_NAME = {
  site: optional(text('--site <site>', 'Auth Site, to give a name in place of an ID')),
};

/** Setting of commands that take resources of several kinds. */
export const SITE_OF_KIND = {
  site: optional(
    text('--site <site>', 'Auth Site, for what belongs to one, and to give a name in place of an ID'),
  ),
};

/** @throws CliError `site_required` */
export function requireSite({ name, needsSite }: NamedKind, site: string | undefined, isList = false): void {
  if (site === undefined && (needsSite === 'always' || (isList && needsSite === 'list'))) {
    throw usageError('site_required', `name the Auth Site of the ${name} with --site`);
  }
}

export interface ListSelection {
  readonly site: string | undefined;
  /** Filters of Control's API. */
  readonly query?: PathInput['query'];
  /** Whether to read an endless list completely. Default: only its newest page. */
  readonly isWhole?: boolean;
}

/** The resources of a kind, page by page: of the site, or everything that the operator may read. */
export async function* pagesOf(
  api: ControlApi,
  kindName: string,
  { site, query, isWhole = false }: ListSelection,
): AsyncGenerator<readonly JsonObject[], void> {
  const { list, isOnePage, newestOnly } = KINDS[kindName] ?? {};
  if (list === undefined) return;
  if (kindName === 'fleets') {
    for (const { environment_id } of await api.list('/v1/environments')) {
      yield* api.untyped.pages(list, { path: { environment_id }, query });
    }
    return;
  }
  const input = { path: { site_id: site }, query };
  if (newestOnly && !isWhole) yield await api.untyped.newest(list, { query: { site_id: site, ...query } });
  else if (isOnePage) yield await api.untyped.page(list, input);
  else yield* api.untyped.pages(list, input);
}

/** All items of {@link pagesOf}. */
export async function listOf(
  api: ControlApi,
  kindName: string,
  selection: ListSelection,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  for await (const page of pagesOf(api, kindName, selection)) items.push(...page);
  return items;
}

/** The resources of this name, by one request. Control up to 0.3.0 has no such filter: its whole list is read. */
async function namedOf(
  api: ControlApi,
  kindName: string,
  name: string,
  site: string | undefined,
): Promise<readonly JsonObject[]> {
  try {
    return await listOf(api, kindName, { site, query: { name } });
  } catch (error) {
    if (!(error instanceof OperatorError && error.code === 'request_invalid')) throw error;
    return listOf(api, kindName, { site });
  }
}

/**
 * The resource of a kind with this ID or name.
 * @throws CliError `list_only`, and those of {@link requireSite} and {@link idOf}
 */
export async function findOne(
  api: ControlApi,
  kind: NamedKind,
  given: string,
  { site, trustDomain }: { readonly site: string | undefined; readonly trustDomain?: string | undefined },
): Promise<{ readonly id: string; readonly path: string }> {
  if (kind.one === undefined) {
    throw usageError('list_only', `${kind.name}: shown as a list only; leave the name out`);
  }
  requireSite(kind, site);
  const id = await idOf(api, kind.parent ?? kind.name, given, site);
  const template = trustDomain === undefined ? kind.one : (kind.oneOfTrustDomain ?? kind.one);
  // A view is identified by the ID of its resource.
  const [idName = ''] = (KINDS[kind.parent ?? kind.name] ?? kind).columns;
  const path = pathWith(template, { path: { site_id: site, trust_domain: trustDomain, [idName]: id } });
  return { id, path };
}

/** For messages: the ID, with the name in brackets if that was given. */
export function idAndName(id: string, given: string): string {
  return given === id ? id : `${id} (${given})`;
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
  const found = (await namedOf(api, kindName, given, site)).filter((each) => each[member] === given);
  // The name of a detached target may be in use again.
  const living = found.filter(({ state }) => state !== 'detached');
  const ids = (living.length > 0 ? living : found).map((each) => String(each[kind.columns[0] ?? '']));
  const [id, another] = ids;
  const where = kind.needsSite === 'never' ? '' : ` --site ${site}`;
  const list = `proofgate ctl get ${kindName}${where}`;
  if (id === undefined) {
    throw new CliError('refused', 'not_found', `no ${kindName} named ${given}; list them: ${list}`);
  }
  if (another === undefined) return id;
  throw usageError('name_ambiguous', `several ${kindName} are named ${given}; give an ID: ${ids.join(', ')}`);
}
