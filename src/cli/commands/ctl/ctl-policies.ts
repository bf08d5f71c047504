/** `proofgate ctl rebind|deactivate|reactivate`: enrollment policies. */

import { MAX_SOURCE_REVISION } from '../../../control/contract/vocabulary.ts';
import { CliError } from '../../../process/program/errors.ts';
import { integer, optional, required, text } from '../../../process/settings/settings.ts';
import type { ControlApi } from '../../ctl/client/control-api.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { idOf, SITE_OF_NAME } from '../../ctl/find-resources.ts';
import { REASON } from '../../ctl/reason.ts';
import type { CommandLineNode } from '../../define/define-command.ts';
import { revisionsIn } from './ctl-sources.ts';

const POLICY = { policy: 'its ID or name' };

const rebind = ctlCommand({
  name: 'rebind',
  summary:
    'Bind an enrollment policy to another source or revision; deployed commands go on working, issued keys stay valid',
  positionals: POLICY,
  settings: {
    ...SITE_OF_NAME,
    source: required(text('--source <source>', 'the ID or name of the source from now on')),
    revision: optional(
      integer('--revision <number>', 'without it, the active one, or the one that is about to be', {
        min: 1,
        max: MAX_SOURCE_REVISION,
      }),
    ),
    expectIssuer: required(text('--expect-issuer <url>', 'issuer of the intended cluster, exactly')),
    ...REASON,
  },
  examples: ['rebind ep_06cz… --source tas_06cz… --expect-issuer https://oidc.example/id/4F2A'],
  async run(api, { positionals, settings: { expectIssuer, reason, revision, site, source: given } }) {
    const policy = await idOf(api, 'policies', positionals.policy, site);
    const source = await idOf(api, 'sources', given, site);
    const path = { policy_id: policy };
    const { etag } = await api.get('/v1/enrollment-policies/{policy_id}', { path });
    const { body } = await api.act('/v1/enrollment-policies/{policy_id}/rebind', {
      path,
      query: { reason },
      body: {
        source_id: source,
        source_revision: revision ?? (await usableRevision(api, source)),
        expected_issuer: expectIssuer,
      },
      etag,
    });
    const bound = `${source} revision ${body.source_revision}`;
    return { lines: [`${policy} is bound to ${bound} and is ${body.state}`], object: body };
  },
});

/** The active revision, otherwise the one that is about to be. @throws CliError `source_not_active` */
async function usableRevision(api: ControlApi, source: string): Promise<number> {
  const { body } = await api.get('/v1/sources/{source_id}', { path: { source_id: source } });
  const states = ['active', 'publishing', 'activating'] as const;
  const [revision] = states.flatMap((state) => revisionsIn(body, [state]));
  if (revision !== undefined) return revision;
  throw new CliError('refused', 'source_not_active', `no revision of ${source} is active, or about to be`);
}

function policyCommand(verb: 'deactivate' | 'reactivate', summary: string): CommandLineNode {
  return ctlCommand({
    name: verb,
    summary,
    positionals: POLICY,
    settings: { ...SITE_OF_NAME, ...REASON },
    examples: [`${verb} ep_06cz…`],
    async run(api, { positionals, settings: { reason, site } }) {
      const policy = await idOf(api, 'policies', positionals.policy, site);
      const input = { path: { policy_id: policy }, query: { reason } };
      const { body } = await api.act(`/v1/enrollment-policies/{policy_id}/${verb}`, input);
      return { lines: [`${policy} is ${body.state}`], object: body };
    },
  });
}

/** In the order of the help. */
export const ctlPolicyCommands: readonly CommandLineNode[] = [
  rebind,
  policyCommand(
    'deactivate',
    'Deactivate an enrollment policy: pending enrollments are denied, issued keys stay valid',
  ),
  policyCommand('reactivate', 'Let a deactivated enrollment policy accept enrollments again'),
];
