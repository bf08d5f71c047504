/** `proofgate ctl block-caller|unblock-caller`: denies every request of a caller, or removes that block. */

import { usageError } from '../../../process/program/errors.ts';
import { optional, required, type SettingValues, text } from '../../../process/settings/settings.ts';
import type { Schemas } from '../../ctl/client/control-api.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { REASON } from '../../ctl/reason.ts';
import { removeBlock } from '../../ctl/remove-block.ts';
import type { CommandLineNode } from '../../define/define-command.ts';

const CALLER = {
  site: required(text('--site <site>', 'Auth Site')),
  issuer: required(
    text('--issuer <url>', "the passport's iss: a broker, an OAuth issuer, or the Auth Site's issuer URL"),
  ),
  subject: optional(text('--subject <subject>', "the passport's sub, exactly")),
  holderThumbprint: optional(
    text('--holder-thumbprint <thumbprint>', 'RFC 7638 thumbprint of one holder key, in place of --subject'),
  ),
  ...REASON,
};
const EXAMPLE =
  '--site shop-eu-1 --issuer https://broker.example/shop --subject spiffe://shop.example/billing';

const blockCaller = ctlCommand({
  name: 'block-caller',
  summary: 'Deny every request of a subject or holder key, before its passport ends',
  settings: CALLER,
  examples: [`block-caller ${EXAMPLE}`],
  async run(api, { settings }) {
    const { body } = await api.create('/v1/sites/{site_id}/blocked-callers', {
      path: { site_id: settings.site },
      query: { reason: settings.reason },
      body: callerOf(settings),
    });
    const waiting = waitingFor(body);
    const caller = shownCaller(settings);
    const lines =
      waiting === ''
        ? [`${caller} is blocked`]
        : [
            `${caller} is not blocked yet: these targets do not report that they know blocked callers: ${waiting}`,
            'update or detach them; then Control publishes the block by itself',
          ];
    return { lines, object: body };
  },
});

const unblockCaller = ctlCommand({
  name: 'unblock-caller',
  summary: 'Admit a blocked caller again',
  settings: CALLER,
  examples: [`unblock-caller ${EXAMPLE}`],
  async run(api, { settings }) {
    const caller = callerOf(settings);
    const selected = { path: { site_id: settings.site }, query: { ...caller, reason: settings.reason } };
    const remove = () => api.remove('/v1/sites/{site_id}/blocked-callers', selected);
    await removeBlock(api, settings.site, remove, shownCaller(settings));
    return {
      lines: [`${shownCaller(settings)} is no longer blocked`],
      object: { site_id: settings.site, ...caller },
    };
  },
});

type Values = SettingValues<typeof CALLER>;
type Caller = Pick<Schemas['BlockedCaller'], 'issuer' | 'subject' | 'holder_thumbprint'>;

/** SHA-256, base64url; the last character has two unused bits, which are zero. */
const THUMBPRINT = /^[\w-]{42}[AEIMQUYcgkosw048]$/;

/** @throws CliError `caller_selector`, `thumbprint_invalid` */
function callerOf({ holderThumbprint, issuer, subject }: Values): Caller {
  if (subject !== undefined && holderThumbprint === undefined) return { issuer, subject };
  if (holderThumbprint !== undefined && subject === undefined) {
    if (!THUMBPRINT.test(holderThumbprint)) {
      const form = 'the RFC 7638 thumbprint of a key: 43 characters of base64url';
      throw usageError('thumbprint_invalid', `--holder-thumbprint must be ${form}`);
    }
    return { issuer, holder_thumbprint: holderThumbprint };
  }
  throw usageError('caller_selector', 'name the caller with either --subject or --holder-thumbprint');
}

function shownCaller({ holderThumbprint, subject }: Values): string {
  return subject ?? `holder key ${holderThumbprint ?? ''}`;
}

/** Names the targets that delay the publication; empty when there are none. */
function waitingFor({ waiting_for: targets = [] }: Schemas['BlockedCaller']): string {
  return targets.map(({ name, target_id: id }) => `${name} (${id})`).join(', ');
}

export const ctlCallerCommands: readonly CommandLineNode[] = [blockCaller, unblockCaller];
