/** `proofgate ctl delete|rename`: deletes or renames a resource that `proofgate ctl get` shows. */

import { usageError } from '../../../process/program/errors.ts';
import { integer, optional, text } from '../../../process/settings/settings.ts';
import type { JsonObject } from '../../../protocol/strict-json.ts';
import type { ApiPath } from '../../ctl/client/control-api.ts';
import { pathWith } from '../../ctl/client/paths.ts';
import { confirm, YES } from '../../ctl/confirmation.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { findOne, SITE_OF_KIND } from '../../ctl/find-resources.ts';
import { REASON } from '../../ctl/reason.ts';
import { KINDS_OF, requireKind } from '../../ctl/resource-kinds.ts';
import type { CommandLineNode } from '../../define/define-command.ts';

const REVISION_PATH: ApiPath = '/v1/sources/{source_id}/revisions/{revision}';

const deleteResource = ctlCommand({
  name: 'delete',
  summary: `Delete for good: ${KINDS_OF.delete.join(', ')}`,
  positionals: { kind: 'what to delete', name: 'its ID or name' },
  settings: {
    ...SITE_OF_KIND,
    revision: optional(
      integer('--revision <number>', 'sources: delete only this draft', {
        min: 1,
        max: Number.MAX_SAFE_INTEGER,
      }),
    ),
    trustDomain: optional(text('--trust-domain <domain>', 'brokers: which one, when an issuer has several')),
    ...REASON,
    ...YES,
  },
  examples: ["delete source 'old cluster' --site shop-eu-1 --yes", 'delete role-grant rg_06cz… --yes'],
  check: ({ kind }) => void requireKind(kind, 'delete'),
  async run(api, { positionals, settings: { reason, revision, site, trustDomain, yes } }, context) {
    const kind = requireKind(positionals.kind, 'delete');
    if (revision !== undefined && kind.name !== 'sources') {
      throw usageError('revision_unused', `--revision selects a draft of sources only, not of ${kind.name}`);
    }
    const one = await findOne(api, kind, positionals.name, { site, trustDomain });
    const { id } = one;
    const ofRevision = { path: { source_id: id, revision } };
    const path = revision === undefined ? one.path : pathWith(REVISION_PATH, ofRevision);
    const found = await api.untyped.get(path);
    const what = `${id}${revision === undefined ? '' : ` revision ${revision}`}${nameOf(found.body, id)}`;
    await confirm(`deletes ${what} for good`, yes, context);
    await api.untyped.remove(path, { query: { reason }, etag: found.etag });
    return { lines: [`${what} is deleted`], object: found.body };
  },
});

/** The resource's name for people, unless that is its ID. */
function nameOf({ display_name, name = display_name, principal, role }: JsonObject, id: string): string {
  const shown =
    principal === undefined || role === undefined ? name : `${String(role)} of ${String(principal)}`;
  return shown === undefined || shown === id ? '' : ` (${String(shown)})`;
}

const rename = ctlCommand({
  name: 'rename',
  summary: `Rename: ${KINDS_OF.rename.join(', ')}`,
  positionals: { kind: 'what to rename', name: 'its ID or name', 'new-name': 'its name from now on' },
  settings: SITE_OF_KIND,
  examples: ['rename target gateway-1 gateway-eu --site shop-eu-1'],
  check: ({ kind }) => void requireKind(kind, 'rename'),
  async run(api, { positionals, settings: { site } }) {
    const kind = requireKind(positionals.kind, 'rename');
    const { id, path } = await findOne(api, kind, positionals.name, { site });
    const { etag } = await api.untyped.get(path);
    const member = kind.named?.member ?? 'name';
    const { body } = await api.untyped.patch(path, { body: { [member]: positionals['new-name'] }, etag });
    return { lines: [`${id} is named ${String(body[member])}`], object: body };
  },
});

export const ctlDeleteCommands: readonly CommandLineNode[] = [deleteResource, rename];
