/** `proofgate ctl create`: what no site file declares: environments, fleets, role grants and access tokens. */

import { ROLES, SCOPE_KINDS } from '../../../control/contract/vocabulary.ts';
import { usageError } from '../../../process/program/errors.ts';
import { choice, duration, optional, required, text } from '../../../process/settings/settings.ts';
import type { ControlApi, Schemas } from '../../ctl/client/control-api.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { idOf } from '../../ctl/find-resources.ts';
import { issueToken, TOKEN_OUT } from '../../ctl/issue-token.ts';
import { REASON } from '../../ctl/reason.ts';
import { group } from '../../define/define-command.ts';

const environment = ctlCommand({
  name: 'environment',
  summary: 'Create an environment',
  positionals: { name: 'its name, unique in the installation' },
  settings: {},
  examples: ['create environment production'],
  async run(api, { positionals: { name } }) {
    const { body } = await api.create('/v1/environments', { body: { name } });
    return { lines: [`${name} is ${body.environment_id}`], object: body };
  },
});

const fleet = ctlCommand({
  name: 'fleet',
  summary: 'Create a fleet in an environment',
  positionals: { name: 'its name, unique in the environment' },
  settings: { environment: required(text('--environment <environment>', 'ID or name of the environment')) },
  examples: ['create fleet eu --environment production'],
  async run(api, { positionals: { name }, settings }) {
    const parent = await idOf(api, 'environments', settings.environment, undefined);
    const { body } = await api.create('/v1/environments/{environment_id}/fleets', {
      path: { environment_id: parent },
      body: { name },
    });
    return { lines: [`${name} is ${body.fleet_id}`], object: body };
  },
});

const ROLE = {
  role: required(choice('--role <role>', 'what it may do', ROLES)),
  scope: required(
    text('--scope <scope>', 'where: installation, environment:NAME, fleet:NAME or site:ID, and all below it'),
  ),
  ...REASON,
};

const roleGrant = ctlCommand({
  name: 'role-grant',
  summary: 'Grant a role to an operator, or to a group of the identity provider',
  positionals: { principal: 'group:NAME, or oidc:ISSUER|SUBJECT' },
  settings: ROLE,
  examples: ['create role-grant group:platform --role admin --scope installation'],
  async run(api, { positionals: { principal }, settings: { reason, role, scope } }) {
    const { body } = await api.create('/v1/role-grants', {
      query: { reason },
      body: { principal, role, scope: await scopeOf(api, scope) },
    });
    const lines = [`${principal} has the role ${role} at ${scope} (${body.role_grant_id})`];
    return { lines, object: body };
  },
});

/** Ten years. */
const MAX_TOKEN_LIFETIME_MS = 87_600 * 3_600_000;

const accessToken = ctlCommand({
  name: 'access-token',
  summary: 'Create a token for automation; it is shown once',
  positionals: { name: 'for people' },
  settings: {
    ...ROLE,
    expiresInMs: optional(
      duration('--expires-in <duration>', 'how long it is valid; without it, for good', {
        minMs: 1000,
        maxMs: MAX_TOKEN_LIFETIME_MS,
      }),
    ),
    ...TOKEN_OUT,
  },
  examples: [
    'create access-token ci --role operator --scope site:shop-eu-1 --expires-in 720h --out ci.token',
  ],
  async run(api, { positionals: { name }, settings: { expiresInMs, out, reason, role, scope } }, { output }) {
    const end = expiresInMs === undefined ? undefined : new Date(Date.now() + expiresInMs).toISOString();
    const input = {
      query: { reason },
      body: { name, role, scope: await scopeOf(api, scope), expires_at: end },
    };
    const create = async () => (await api.create('/v1/access-tokens', input)).body;
    return issueToken(create, 'access-token', out, output);
  },
});

/** @throws CliError `scope_invalid`, and those of {@link idOf} */
async function scopeOf(api: ControlApi, given: string): Promise<Schemas['Scope']> {
  const [, word, name] = /^([a-z]+)(?::(.+))?$/s.exec(given) ?? [];
  const kind = SCOPE_KINDS.find((each) => each === word);
  if (kind === undefined || (kind === 'installation') !== (name === undefined)) {
    const forms = 'installation, environment:NAME, fleet:NAME or site:ID';
    throw usageError('scope_invalid', `${given} is no scope: give ${forms}`);
  }
  return name === undefined ? { kind } : { kind, id: await idOf(api, `${kind}s`, name, undefined) };
}

export const ctlCreateCommands = group(
  'create',
  'Create what no site file declares: an environment, a fleet, a role grant, an access token',
  [environment, fleet, roleGrant, accessToken],
);
