/** `proofgate ctl retire-signing-key`: ends a signing key that was replaced, sooner than the rotation said. */
import { sitePath } from '../../../client/operator/paths.ts';
import { formatDurationMs } from '../../../program/durations.ts';
import { usageError } from '../../../program/errors.ts';
import { duration, withDefault } from '../../../program/settings.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { type CliContext, defineCommand, type ProofgateCommand } from '../../define-command.ts';

/** As long as a rotation may say. */
const MAX_RETIRING_MS = 90 * 24 * 3_600_000;

const SETTINGS = {
  ...CTL_SETTINGS,
  inMs: withDefault(
    duration('--in <duration>', 'how long the key still signs, whole seconds', {
      minMs: 0,
      maxMs: MAX_RETIRING_MS,
    }),
    '0s',
  ),
};

export function registerCtlRetireSigningKey(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'retire-signing-key',
    summary: 'End a retiring signing key now, or sooner than planned; verifiers must pin the new key before',
    positionals: { site: 'Auth Site', key: 'ID of the signing key' },
    settings: SETTINGS,
    examples: [
      'proofgate ctl retire-signing-key shop-eu-1 sk_06cz… --control-url https://control.example --token-file token',
    ],
    run: ({ settings, positionals: { site, key } }) =>
      withControl(settings, context, async (api) => {
        const body = { retiring_seconds: wholeSeconds(settings.inMs) };
        const path = `${sitePath(site)}/signing-keys/${encodeURIComponent(key)}/retire`;
        const { body: retired } = await api.act(path, body);
        const warning = { code: 'signing_key_ends', message: warningOf(key, settings.inMs) };
        context.output.note(warning.code, `warning: ${warning.message}`);
        context.output.result([`${key} ${endOf(settings.inMs)}`], { ...retired, warnings: [warning] });
      }),
  });
}

function wholeSeconds(inMs: number): number {
  if (inMs % 1000 !== 0) throw usageError('bad_duration', '--in must be whole seconds');
  return inMs / 1000;
}

function endOf(inMs: number): string {
  return inMs === 0 ? 'is retired' : `signs for ${formatDurationMs(inMs)} more`;
}

function warningOf(key: string, inMs: number): string {
  const when = inMs === 0 ? 'from now on' : `after ${formatDurationMs(inMs)}`;
  return (
    `${when} verifiers that pin ${key} and not the key after it refuse what Control publishes, and deny once what they have is too old;` +
    ' give them the keys of `proofgate ctl signing-keys` and restart them'
  );
}
