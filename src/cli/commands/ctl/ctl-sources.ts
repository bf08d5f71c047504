/** `proofgate ctl draft|validate|activate|suspend|resume|retire`: Trust Anchor Sources. */

import { DRAFT_STATES, MAX_SOURCE_REVISION, type SourceState } from '../../../control/contract/vocabulary.ts';
import { CliError, usageError } from '../../../process/program/errors.ts';
import { choice, integer, optional, required, text } from '../../../process/settings/settings.ts';
import type { ControlApi, Loose, Schemas } from '../../ctl/client/control-api.ts';
import { confirm, YES } from '../../ctl/confirmation.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { idAndName, idOf, SITE_OF_NAME } from '../../ctl/find-resources.ts';
import { REASON } from '../../ctl/reason.ts';
import type { CommandLineNode } from '../../define/define-command.ts';

const SOURCE = { source: 'its ID or name' };
const SOURCE_PATH = '/v1/sources/{source_id}';
const REVISION_PATH = '/v1/sources/{source_id}/revisions/{revision}';

const draft = ctlCommand({
  name: 'draft',
  summary: 'Edit the draft of a source, or start one beside its newest revision; what you leave out stays',
  positionals: SOURCE,
  settings: {
    ...SITE_OF_NAME,
    issuer: optional(text('--issuer <url>', "the cluster's issuer, exactly as in its tokens")),
    jwksUri: optional(text('--jwks-uri <url>', 'where its key set is')),
    audience: optional(text('--audience <audience>', 'the only audience of workload tokens')),
    discovery: optional(
      choice(
        '--discovery <discovery>',
        "whether the issuer's discovery document must name the issuer and the key set",
        ['checked', 'skipped'],
      ),
    ),
  },
  examples: ['draft tas_06cz… --jwks-uri https://oidc.example/keys'],
  async run(api, { positionals, settings: { audience, discovery, issuer, jwksUri, site } }) {
    const source = await idOf(api, 'sources', positionals.source, site);
    const change = { issuer, jwks_uri: jwksUri, audience, discovery };
    const path = { source_id: source };
    const { body: view } = await api.get(SOURCE_PATH, { path });
    const open = revisionsIn(view, DRAFT_STATES).at(-1);
    const { body } =
      open === undefined
        ? await api.create('/v1/sources/{source_id}/revisions', { path, body: change })
        : await editDraft(api, { ...path, revision: open }, change);
    return { lines: [`${source} revision ${body.revision} is ${body.state}`], object: body };
  },
});

async function editDraft(
  api: ControlApi,
  path: { readonly source_id: string; readonly revision: number },
  change: Loose<Schemas['SourceRevisionChange']>,
) {
  if (Object.values(change).every((value) => value === undefined)) {
    throw usageError('change_required', 'there is a draft already: say what changes in it');
  }
  const { etag } = await api.get(REVISION_PATH, { path });
  return api.patch(REVISION_PATH, { path, body: change, etag });
}

const validate = ctlCommand({
  name: 'validate',
  summary: "Fetch and check the metadata and keys of a source's draft, and show its scope",
  positionals: SOURCE,
  settings: SITE_OF_NAME,
  examples: ['validate tas_06cz…'],
  async run(api, { positionals, settings: { site } }) {
    const source = await idOf(api, 'sources', positionals.source, site);
    const revision = await revisionIn(api, source, DRAFT_STATES);
    const path = { source_id: source, revision };
    const { body } = await api.act(`${REVISION_PATH}/validate`, { path });
    const { detected_scope: scope, failure, state } = body;
    if (state !== 'validated') {
      const why = failure === undefined ? state : `${failure.code}: ${failure.detail}`;
      throw new CliError('refused', 'source_not_validated', `${source} revision ${revision}: ${why}`);
    }
    return {
      lines: [`${source} revision ${revision} is validated; its scope is ${scope}`],
      object: body,
    };
  },
});

const activate = ctlCommand({
  name: 'activate',
  summary: 'Activate the validated revision of a source; it is active once every target has acknowledged it',
  positionals: SOURCE,
  settings: {
    ...SITE_OF_NAME,
    expectScope: required(
      text('--expect-scope <scope>', 'scope of the intended cluster, as `validate` shows'),
    ),
    ...REASON,
  },
  examples: ['activate tas_06cz… --expect-scope oidc.example/id/4F2A'],
  async run(api, { positionals, settings: { expectScope, reason, site } }) {
    const source = await idOf(api, 'sources', positionals.source, site);
    const revision = await revisionIn(api, source, ['validated']);
    const { body } = await api.act(`${REVISION_PATH}/activate`, {
      path: { source_id: source, revision },
      query: { reason },
      body: { expected_scope: expectScope },
    });
    return { lines: [`${source} revision ${revision} is ${body.state}`], object: body };
  },
});

const suspend = ctlCommand({
  name: 'suspend',
  summary: 'Suspend a source: no new enrollments until it is resumed',
  positionals: SOURCE,
  settings: { ...SITE_OF_NAME, ...REASON },
  examples: ['suspend tas_06cz…'],
  async run(api, { positionals, settings: { reason, site } }) {
    const source = await idOf(api, 'sources', positionals.source, site);
    const revision = await revisionIn(api, source, ['active', 'publishing']);
    return actOn(api, { source, revision, verb: 'suspend', reason });
  },
});

const resume = ctlCommand({
  name: 'resume',
  summary: 'Resume a suspended source',
  positionals: SOURCE,
  settings: {
    ...SITE_OF_NAME,
    ...REASON,
    revision: optional(
      integer('--revision <number>', 'required when several revisions are suspended', {
        min: 1,
        max: MAX_SOURCE_REVISION,
      }),
    ),
  },
  examples: ['resume tas_06cz…'],
  async run(api, { positionals, settings: { reason, revision: given, site } }) {
    const source = await idOf(api, 'sources', positionals.source, site);
    const revision = given ?? (await onlySuspended(api, source));
    return actOn(api, { source, revision, verb: 'resume', reason });
  },
});

const retire = ctlCommand({
  name: 'retire',
  summary: 'Retire a source for good, with every revision: no new enrollments',
  positionals: SOURCE,
  settings: { ...SITE_OF_NAME, ...REASON, ...YES },
  examples: ['retire tas_06cz… --yes'],
  async run(api, { positionals, settings: { reason, site, yes } }, context) {
    const source = await idOf(api, 'sources', positionals.source, site);
    const named = idAndName(source, positionals.source);
    await confirm(`retires ${named} with every revision for good`, yes, context);
    const input = { path: { source_id: source }, query: { reason } };
    const { body } = await api.act('/v1/sources/{source_id}/retire', input);
    return { lines: [`${source} is retired`], object: body };
  },
});

/**
 * A suspension may stop an active revision and the one that was to replace it. Once one of them is active again, the
 * other is retired, so the operator chooses.
 * @throws CliError `revision_required`, `source_state_conflict`
 */
async function onlySuspended(api: ControlApi, source: string): Promise<number> {
  const { body } = await api.get(SOURCE_PATH, { path: { source_id: source } });
  const [only, ...others] = revisionsIn(body, ['suspended']);
  if (only === undefined) throw noRevisionIn(source, body, ['suspended']);
  if (others.length === 0) return only;
  throw usageError(
    'revision_required',
    `revisions ${[only, ...others].join(', ')} of ${source} are suspended: choose one with --revision; the others are retired once it is active`,
  );
}

interface Act {
  readonly source: string;
  readonly revision: number;
  readonly verb: 'suspend' | 'resume';
  readonly reason: string | undefined;
}

async function actOn(api: ControlApi, { source, revision, verb, reason }: Act) {
  const input = { path: { source_id: source, revision }, query: { reason } };
  const { body } = await api.act(`${REVISION_PATH}/${verb}`, input);
  return { lines: [`${source} revision ${revision} is ${body.state}`], object: body };
}

/** The newest revision in the first of the states that any has. @throws CliError `source_state_conflict` */
async function revisionIn(
  api: ControlApi,
  sourceId: string,
  states: readonly SourceState[],
): Promise<number> {
  const { body } = await api.get(SOURCE_PATH, { path: { source_id: sourceId } });
  const newest = states.flatMap((state) => revisionsIn(body, [state]).slice(-1))[0];
  if (newest === undefined) throw noRevisionIn(sourceId, body, states);
  return newest;
}

function noRevisionIn(
  sourceId: string,
  { revisions = [] }: Schemas['Source'],
  states: readonly SourceState[],
): CliError {
  const all = revisions.map(({ revision, state }) => `${revision}: ${state}`).join(', ');
  const message = `no revision of ${sourceId} is ${states.join(' or ')} (${all})`;
  return new CliError('refused', 'source_state_conflict', message);
}

/** Numbers of the revisions in these states, in ascending order. */
export function revisionsIn(
  { revisions = [] }: Schemas['Source'],
  states: readonly SourceState[],
): readonly number[] {
  return revisions
    .filter(({ state }) => states.includes(state))
    .map(({ revision }) => revision)
    .sort((one, other) => one - other);
}

/** In the order of the help. */
export const ctlSourceCommands: readonly CommandLineNode[] = [
  draft,
  validate,
  activate,
  suspend,
  resume,
  retire,
];
