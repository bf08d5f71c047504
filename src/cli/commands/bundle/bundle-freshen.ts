/** `proofgate bundle freshen`: signs that a directory's bundle is the latest, once or at an interval. */

import { duration, optional, type SettingValues } from '../../../process/settings/settings.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import {
  readSigningKeys,
  readTrustedSigners,
  SIGNING_KEYS,
  TRUSTED_SIGNERS,
} from '../../bundle/bundle-flags.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const MAX_INTERVAL_MS = 3_600_000;

const SETTINGS = {
  ...SIGNING_KEYS,
  everyMs: optional(
    duration('--every <duration>', 'do so again and again until SIGTERM, 1s to 1h', {
      minMs: 1000,
      maxMs: MAX_INTERVAL_MS,
    }),
  ),
  ...TRUSTED_SIGNERS,
};

export const bundleFreshenCommand = command({
  name: 'freshen',
  summary: 'Sign a statement that the bundle in a directory is the latest',
  positionals: { directory: 'where the bundle is' },
  settings: SETTINGS,
  examples: [
    'proofgate bundle freshen bundle --key signer.pem',
    'proofgate bundle freshen bundle --key freshness.pem --bundle-key signer.jwk.json --every 3s',
  ],
  run: ({ settings, positionals }, context) => freshenDirectory(positionals.directory, settings, context),
});

async function freshenDirectory(
  directory: string,
  settings: SettingValues<typeof SETTINGS>,
  context: CliContext,
): Promise<void> {
  const { freshen } = await import('../../../bundle/authoring/authoring.ts');
  const signingKeys = await readSigningKeys(settings.keys);
  const trusted = await readTrustedSigners(settings);
  const statement = () =>
    freshen({ directory, signingKeys, trusted, nowSeconds: Math.floor(Date.now() / 1000) });
  if (settings.everyMs === undefined) return showStatement(await statement(), context);
  await freshenUntilStopped(statement, settings.everyMs, context);
}

interface Statement {
  readonly revision: number;
  readonly head: string;
  readonly asOfSeconds: number;
}

function showStatement({ revision, head, asOfSeconds }: Statement, { output }: CliContext): void {
  const asOf = formatTime(asOfSeconds);
  output.result([`revision ${revision} is the latest as of ${asOf}`], { revision, head, as_of: asOf });
}

/** Shows each failure, and the first success after it. A failure does not end the loop. */
async function freshenUntilStopped(
  statement: () => Promise<Statement>,
  everyMs: number,
  context: CliContext,
): Promise<void> {
  const { setTimeout: sleep } = await import('node:timers/promises');
  const { untilStopped } = await import('../../../process/program/stop-signal.ts');
  const { fromLibraryError } = await import('../../errors/library-errors.ts');
  let shownRevision: number | undefined;
  await untilStopped(async (stop) => {
    while (!stop.aborted) {
      try {
        const made = await statement();
        if (made.revision !== shownRevision) showStatement(made, context);
        shownRevision = made.revision;
      } catch (error) {
        shownRevision = undefined;
        context.output.error(fromLibraryError(error));
      }
      // Rejects when stopped, which ends the loop.
      await sleep(everyMs, undefined, { signal: stop }).catch(() => undefined);
    }
  });
}
