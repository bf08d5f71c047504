/** `proofgate ctl get`: shows Control's resources, as a list or a single one. */

import { usageError } from '../../../process/program/errors.ts';
import type { Output } from '../../../process/program/output.ts';
import { optional, type SettingValues, text } from '../../../process/settings/settings.ts';
import { isJsonObject, type JsonObject, jsonObjects } from '../../../protocol/strict-json.ts';
import type { ControlApi } from '../../ctl/client/control-api.ts';
import { type CtlResult, ctlCommand } from '../../ctl/ctl-connection.ts';
import {
  findOne,
  idOf,
  type ListSelection,
  listOf,
  pagesOf,
  requireSite,
  SITE_OF_KIND,
} from '../../ctl/find-resources.ts';
import { filterQuery, LIST_FILTERS } from '../../ctl/list-filters.ts';
import { KINDS_OF, type NamedKind, requireKind } from '../../ctl/resource-kinds.ts';
import { isListOfObjects, memberLines, tableLines } from '../../ctl/resource-table.ts';

const SETTINGS = {
  ...SITE_OF_KIND,
  ...LIST_FILTERS,
  subject: optional(
    text(
      '--subject <subject>',
      "keys: those whose verified subject contains this; profiles: those of this caller with a broker's passports, as a profile file",
    ),
  ),
  issuer: optional(text('--issuer <url>', 'profiles --subject: the broker that signs the passports')),
  trustDomain: optional(
    text('--trust-domain <domain>', 'profiles --subject, brokers: which one, when an issuer has several'),
  ),
  target: optional(text('--target <target>', 'readiness: for this target alone')),
  out: optional(text('--out <file>', 'profiles --subject: the profile file to write; replaces the file')),
};
type Values = SettingValues<typeof SETTINGS>;

export const ctlGetCommand = ctlCommand({
  name: 'get',
  summary: `Show what Control holds: ${KINDS_OF.get.join(', ')}`,
  positionals: { kind: 'what to show', 'name?': 'one of them, by its ID or name; without it: all' },
  settings: SETTINGS,
  examples: ['get keys --site shop-eu-1', 'get command ep_06cz…', 'get audit --since 24h --output jsonl'],
  check: ({ kind }) => void requireKind(kind, 'get'),
  run: (api, { settings, positionals: { kind, name } }, { output }) =>
    get(api, requireKind(kind, 'get'), name, { settings, output }),
});

interface Request {
  readonly settings: Values;
  readonly output: Output;
}

async function get(
  api: ControlApi,
  kind: NamedKind,
  name: string | undefined,
  { settings, output }: Request,
): Promise<CtlResult | undefined> {
  const { width } = output;
  requireSite(kind, settings.site, name === undefined);
  if (settings.target !== undefined && kind.name !== 'readiness') {
    throw usageError('target_unused', `--target selects readiness only, not ${kind.name}`);
  }
  if (settings.subject !== undefined && kind.name === 'profiles') {
    return getCallerProfiles(api, settings.subject, settings, width);
  }
  if (settings.subject !== undefined && kind.name !== 'keys') {
    throw usageError('subject_unused', `--subject selects profiles and keys only, not ${kind.name}`);
  }
  const selection = await selectionOf(api, kind, settings);
  if (name !== undefined) {
    if (Object.keys(selection.query).length > 0)
      throw usageError('filter_unused', 'filters select from a list: leave the name out');
    const object = await getOne(api, kind, name, settings);
    return { lines: detailLines(kind, object, width), object };
  }
  if (kind.list === undefined) {
    throw usageError('name_required', `name one of the ${kind.parent}, to show its ${kind.name}`);
  }
  if (output.format === 'jsonl') return writeItems(api, kind, { ...selection, isWhole: true }, output);
  const items = await listOf(api, kind.name, selection);
  const shown = items.map(withStates).map(withAwaited).map(withKeyAges).map(withResourceId);
  return { lines: tableLines(kind.columns, shown, width), object: { items } };
}

/** An endless list is shown completely for a given period. */
async function selectionOf(api: ControlApi, { name }: NamedKind, settings: Values) {
  const { site, policy, since, until } = settings;
  const policyId = policy === undefined ? undefined : await idOf(api, 'policies', policy, site);
  const query = filterQuery(name, { ...settings, policyId }, Date.now());
  return { site, query, isWhole: since !== undefined || until !== undefined } satisfies ListSelection;
}

/** Writes each page as it arrives: a list may be longer than memory. */
async function writeItems(
  api: ControlApi,
  { name }: NamedKind,
  selection: ListSelection,
  output: Output,
): Promise<undefined> {
  for await (const page of pagesOf(api, name, selection)) {
    for (const item of page) await output.item(item);
  }
}

/** @throws CliError as {@link findOne} */
async function getOne(
  api: ControlApi,
  kind: NamedKind,
  name: string,
  { site, target, trustDomain }: Values,
): Promise<JsonObject> {
  const { path } = await findOne(api, kind, name, { site, trustDomain });
  if (kind.name === 'grants') return { items: await api.untyped.list(path) };
  const query = target ? { target: await idOf(api, 'targets', target, site) } : {};
  return (await api.untyped.get(path, { query })).body;
}

async function getCallerProfiles(
  api: ControlApi,
  subject: string,
  values: Values,
  width: number | undefined,
): Promise<CtlResult> {
  const { callerProfiles } = await import('./ctl-caller-profiles.ts');
  const input = { ...values, site: values.site ?? '', subject };
  const { profiles, written, object } = await callerProfiles(api, input);
  const routes = tableLines(['route_id', 'method', 'path_template', 'audience'], profiles, width);
  return { lines: written.length > 0 ? written : routes, object };
}

/** Names a broker's pinned keys with their ages. Control up to 0.3.0 does not know the ages. */
function withKeyAges(item: JsonObject): JsonObject {
  if (!isListOfObjects(item.keys)) return item;
  const ages = item.keys.map(({ kid, pinned_at: since }) => `${String(kid)} (${ageOf(since)})`);
  return { ...item, pinned_keys: ages.join(', ') };
}

/** Such as `12d` or `3h`. */
function ageOf(since: unknown): string {
  const minutes = Math.max(0, Math.floor((Date.now() - Date.parse(String(since))) / 60_000));
  if (Number.isNaN(minutes)) return '?';
  if (minutes < 120) return `${minutes}m`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)}h` : `${Math.floor(minutes / (24 * 60))}d`;
}

/** Derives a source's states from its revisions. */
function withStates(item: JsonObject): JsonObject {
  if (!isListOfObjects(item.revisions)) return item;
  const states = item.revisions.map(({ revision, state }) => `${String(revision)}:${String(state)}`);
  return { ...item, states: states.join(' ') };
}

/** Names the targets for which a blocked caller, or a source's revision, waits. */
function withAwaited(item: JsonObject): JsonObject {
  const waiting = isListOfObjects(item.revisions) ? item.revisions : [item];
  const names = waiting.flatMap(({ waiting_for: targets }) =>
    isListOfObjects(targets) ? targets.map(({ name }) => String(name)) : [],
  );
  return names.length === 0 ? item : { ...item, waiting_for: names.join(', ') };
}

/** Formats the object of an audit event. */
function withResourceId(item: JsonObject): JsonObject {
  return isJsonObject(item.resource) ? { ...item, resource_id: item.resource.id } : item;
}

function detailLines(
  { columns, name }: NamedKind,
  body: JsonObject,
  width: number | undefined,
): readonly string[] {
  if (name === 'grants') return tableLines(columns, jsonObjects(body.items), width);
  if (name === 'command') {
    const pairs = [
      [body.command, body.init_container],
      [body.agent_command, body.native_sidecar],
      ...(body.signer_command === undefined ? [] : [[body.signer_command, body.signer_sidecar]]),
    ];
    return pairs.flatMap(([command, parts]) => [String(command), '', ...String(parts).split('\n')]);
  }
  return memberLines(body, width);
}
