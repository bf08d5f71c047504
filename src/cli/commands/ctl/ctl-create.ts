/** `proofgate ctl create`: what no site file declares: environments, fleets, role grants and access tokens. */

import { ROLES, SCOPE_KINDS } from '../../../control/contract/vocabulary.ts';
import { usageError } from '../../../process/program/errors.ts';
import { choice, duration, optional, required, text } from '../../../process/settings/settings.ts';
import type { JsonObject } from '../../../protocol/strict-json.ts';
import type { ControlApi } from '../../ctl/client/control-api.ts';
import { withReason } from '../../ctl/client/paths.ts';
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
    const { body } = await api.create('/v1/environments', { name });
    return { lines: [`${name} is ${String(body.environment_id)}`], object: body };
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
    const { body } = await api.create(`/v1/environments/${encodeURIComponent(parent)}/fleets`, { name });
    return { lines: [`${name} is ${String(body.fleet_id)}`], object: body };
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
    const wish = { principal, role, scope: await scopeOf(api, scope) };
    const { body } = await api.create(withReason('/v1/role-grants', reason), wish);
    const lines = [`${principal} has the role ${role} at ${scope} (${String(body.role_grant_id)})`];
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
    const end = expiresInMs && { expires_at: new Date(Date.now() + expiresInMs).toISOString() };
    const wish = { name, role, scope: await scopeOf(api, scope), ...end };
    const create = async () => (await api.create(withReason('/v1/access-tokens', reason), wish)).body;
    return issueToken(create, 'access-token', out, output);
  },
});

/** @throws CliError `scope_invalid`, and those of {@link idOf} */
async function scopeOf(api: ControlApi, given: string): Promise<JsonObject> {
  const [, kind = '', name] = /^([a-z]+)(?::(.+))?$/s.exec(given) ?? [];
  const isKnown = SCOPE_KINDS.some((each) => each === kind);
  if (!isKnown || (kind === 'installation') !== (name === undefined)) {
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
