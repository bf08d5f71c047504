/** `proofgate ctl rotate-signing-key|retire-signing-key|rotate-target-token|rotate-access-token|end-sessions|disable-bootstrap-token`. */

import { usageError } from '../../../process/program/errors.ts';
import {
  choice,
  duration,
  formatDurationMs,
  required,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import { confirm, YES } from '../../ctl/confirmation.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { idOf, SITE_OF_NAME } from '../../ctl/find-resources.ts';
import { issueToken, TOKEN_OUT } from '../../ctl/issue-token.ts';
import type { CommandLineNode } from '../../define/define-command.ts';

/** The longest time that a rotation may set. */
const MAX_RETIRING_MS = 90 * 24 * 3_600_000;

const rotateSigningKey = ctlCommand({
  name: 'rotate-signing-key',
  summary: 'Create another signing key of a site; the previous key also signs for a while',
  positionals: { site: 'Auth Site' },
  settings: {
    purpose: required(choice('--purpose <purpose>', 'what it signs', ['bundle', 'freshness', 'receipt'])),
    retiringMs: withDefault(
      duration('--retiring <duration>', 'how long the key before also signs, whole seconds', {
        minMs: 60_000,
        maxMs: MAX_RETIRING_MS,
      }),
      '24h',
    ),
  },
  examples: ['rotate-signing-key shop-eu-1 --purpose bundle --retiring 72h'],
  async run(api, { positionals: { site }, settings: { purpose, retiringMs } }) {
    const retiring_seconds = wholeSeconds('retiring', retiringMs);
    const { body } = await api.act('/v1/sites/{site_id}/signing-keys/rotate', {
      path: { site_id: site },
      body: { purpose, retiring_seconds },
    });
    const next = `the key before it signs for ${formatDurationMs(retiringMs)} more`;
    return {
      lines: [`${body.signing_key_id} signs from now on (${purpose}); ${next}`],
      object: body,
    };
  },
});

const retireSigningKey = ctlCommand({
  name: 'retire-signing-key',
  summary: 'End a retiring signing key now, or sooner than planned; verifiers must pin the new key before',
  positionals: { site: 'Auth Site', 'signing-key': 'its ID' },
  settings: {
    inMs: withDefault(
      duration('--in <duration>', 'how long the key still signs, whole seconds', {
        minMs: 0,
        maxMs: MAX_RETIRING_MS,
      }),
      '0s',
    ),
  },
  examples: ['retire-signing-key shop-eu-1 sk_06cz…'],
  async run(api, { positionals: { site, 'signing-key': key }, settings: { inMs } }, { output }) {
    const { body } = await api.act('/v1/sites/{site_id}/signing-keys/{signing_key_id}/retire', {
      path: { site_id: site, signing_key_id: key },
      body: { retiring_seconds: wholeSeconds('in', inMs) },
    });
    const warning = { code: 'signing_key_ends', message: keyEndWarning(key, inMs) };
    output.note(warning.code, `warning: ${warning.message}`);
    const end = inMs === 0 ? 'is retired' : `signs for ${formatDurationMs(inMs)} more`;
    return { lines: [`${key} ${end}`], object: { ...body, warnings: [warning] } };
  },
});

function wholeSeconds(flag: string, ms: number): number {
  if (ms % 1000 !== 0) throw usageError('bad_duration', `--${flag} must be whole seconds`);
  return ms / 1000;
}

function keyEndWarning(key: string, inMs: number): string {
  const when = inMs === 0 ? 'from now on' : `after ${formatDurationMs(inMs)}`;
  return (
    `${when} verifiers that pin ${key} and not the key after it refuse what Control publishes, and deny once what they have is too old;` +
    ' give them the keys of `proofgate ctl signing-keys` and restart them'
  );
}

const rotateTargetToken = ctlCommand({
  name: 'rotate-target-token',
  summary: 'Give a target another token; the old token stays valid for a while',
  positionals: { target: 'its ID or name' },
  settings: {
    ...SITE_OF_NAME,
    out: required(text('--out <file>', 'where the new token is written, mode 0600; replaces the file')),
  },
  examples: ['rotate-target-token tgt_06cz… --out gateway.token'],
  async run(api, { positionals, settings: { out, site } }, { output }) {
    const target = await idOf(api, 'targets', positionals.target, site);
    const input = { path: { target_id: target }, body: {} };
    const rotate = async () => (await api.act('/v1/targets/{target_id}/rotate-token', input)).body;
    return issueToken(rotate, 'target-token', out, output);
  },
});

const rotateAccessToken = ctlCommand({
  name: 'rotate-access-token',
  summary: 'Replace an access token; the old token ends at once',
  positionals: { 'access-token': 'its ID or name' },
  settings: TOKEN_OUT,
  examples: ['rotate-access-token at_06cz… --out ci.token'],
  async run(api, { positionals, settings: { out } }, { output }) {
    const access_token_id = await idOf(api, 'access-tokens', positionals['access-token'], undefined);
    const input = { path: { access_token_id } };
    const rotate = async () => (await api.act('/v1/access-tokens/{access_token_id}/rotate', input)).body;
    return issueToken(rotate, 'access-token', out, output);
  },
});

const endSessions = ctlCommand({
  name: 'end-sessions',
  summary: 'Sign an operator out everywhere: end all sessions',
  positionals: { principal: 'the operator, as `get sessions` names them' },
  settings: YES,
  examples: ["end-sessions 'oidc:https://login.example|ada' --yes"],
  async run(api, { positionals: { principal }, settings: { yes } }, context) {
    await confirm(`ends all sessions of ${principal}`, yes, context);
    const { body } = await api.remove('/v1/sessions', { query: { principal } });
    const lines = [`${body.ended} sessions of ${principal} are ended`];
    return { lines, object: { principal, ...body } };
  },
});

const disableBootstrapToken = ctlCommand({
  name: 'disable-bootstrap-token',
  summary: 'End the bootstrap token for good; only a start with --reset-bootstrap-token creates another',
  settings: YES,
  examples: ['disable-bootstrap-token --yes'],
  async run(api, { settings: { yes } }, context) {
    await confirm('ends the bootstrap token for good', yes, context);
    await api.remove('/v1/bootstrap-token');
    return { lines: ['the bootstrap token is disabled'], object: { disabled: true } };
  },
});

/** In the order of the help. */
export const ctlSecretCommands: readonly CommandLineNode[] = [
  rotateSigningKey,
  retireSigningKey,
  rotateTargetToken,
  rotateAccessToken,
  endSessions,
  disableBootstrapToken,
];
