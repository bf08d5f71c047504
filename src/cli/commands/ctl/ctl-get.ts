/** `proofgate ctl get`: shows Control's resources, as a list or a single one. */

import type { ControlApi } from '../../../client/operator/control-api.ts';
import { usageError } from '../../../program/errors.ts';
import { optional, type SettingValues, text } from '../../../program/settings.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/strict-json.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { KINDS_OF, type Kind, requireKind } from '../../ctl/kinds.ts';
import { isListOfObjects, memberLines, tableLines } from '../../ctl/resource-text.ts';
import { idOf, listOf } from '../../ctl/resources.ts';
import { type CliContext, command } from '../../define-command.ts';

const SETTINGS = {
  ...CTL_SETTINGS,
  site: optional(
    text('--site <site>', 'Auth Site, for what belongs to one, and to give a name in place of an ID'),
  ),
  subject: optional(
    text(
      '--subject <subject>',
      "profiles: those of this caller with a broker's passports, as a profile file",
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

export const ctlGetCommand = command({
  name: 'get',
  summary: `Show what Control holds: ${KINDS_OF.get?.join(', ')}`,
  positionals: { kind: 'what to show', 'name?': 'one of them, by its ID or name; without it: all' },
  settings: SETTINGS,
  examples: [
    'proofgate ctl get keys --site shop-eu-1 --control-url https://control.example --token-file token',
    'proofgate ctl get command ep_06cz… --control-url https://control.example --token-file token',
  ],
  check: ({ kind }) => void requireKind(kind, 'get'),
  run: ({ settings, positionals }, context) => get(positionals.kind, positionals.name, settings, context),
});

async function get(given: string, name: string | undefined, values: Values, context: CliContext) {
  const kind = requireKind(given, 'get');
  if (values.site === undefined && (kind.needsSite === 'always' || (kind.needsSite === 'list' && !name))) {
    throw usageError('site_required', `name the Auth Site of the ${kind.name} with --site`);
  }
  if (values.subject !== undefined && kind.name !== 'profiles') {
    throw usageError('subject_unused', `--subject selects profiles only, not ${kind.name}`);
  }
  if (values.target !== undefined && kind.name !== 'readiness') {
    throw usageError('target_unused', `--target selects readiness only, not ${kind.name}`);
  }
  const { output } = context;
  await withControl(values, context, async (api) => {
    if (values.subject !== undefined) return getCallerProfiles(api, values.subject, values, context);
    if (name !== undefined) {
      const body = await getOne(api, kind, name, values);
      return output.result(detailLines(kind, body, output.width), body);
    }
    if (kind.list === undefined) {
      const text = `name what the ${kind.name} is of: one of the ${kind.of}`;
      throw usageError('name_required', text);
    }
    const items = await listOf(api, kind.name, values.site);
    const shown = items.map(withStates).map(withAwaited).map(withKeyAges).map(withResourceId);
    output.result(tableLines(kind.columns, shown, output.width), { items });
  });
}

/** @throws CliError `list_only`, and those of {@link idOf} */
async function getOne(
  api: ControlApi,
  kind: Kind & { readonly name: string },
  name: string,
  { site, target, trustDomain }: Values,
): Promise<JsonObject> {
  if (kind.one === undefined)
    throw usageError('list_only', `${kind.name}: shown as a list only; leave the name out`);
  const id = await idOf(api, kind.of ?? kind.name, name, site);
  const encoded = (text: string) => encodeURIComponent(text);
  const path = kind.one(encoded(site ?? ''), encoded(id), trustDomain && encoded(trustDomain));
  if (kind.name === 'grants') return { items: await api.list(path) };
  const ofTarget = target && new URLSearchParams({ target: await idOf(api, 'targets', target, site) });
  return (await api.get(ofTarget ? `${path}?${ofTarget}` : path)).body;
}

async function getCallerProfiles(api: ControlApi, subject: string, values: Values, { output }: CliContext) {
  const { callerProfiles } = await import('./ctl-caller-profiles.ts');
  const input = { ...values, site: values.site ?? '', subject };
  const { profiles, written, object } = await callerProfiles(api, input);
  const routes = tableLines(['route_id', 'method', 'path_template', 'audience'], profiles, output.width);
  output.result(written.length > 0 ? written : routes, object);
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
  { columns, name }: Kind & { readonly name: string },
  body: JsonObject,
  width: number | undefined,
): readonly string[] {
  if (name === 'grants') return tableLines(columns, (body.items ?? []) as readonly JsonObject[], width);
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
