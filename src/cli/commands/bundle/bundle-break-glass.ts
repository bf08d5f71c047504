/**
 * `proofgate bundle break-glass`: signs that the bundle which a site's verifiers hold may be older than its routes allow. Revision and
 * head come from the verifiers alone: they verified both, and a second source could name another.
 */
import { CliError, usageError } from '../../../process/program/errors.ts';
import { isBareHttpUrl } from '../../../process/settings/service-urls.ts';
import {
  duration,
  integer,
  list,
  optional,
  parsed,
  required,
  type SettingValues,
  text,
} from '../../../process/settings/settings.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import { readSigningKeys, SIGNING_KEYS } from '../../bundle/bundle-flags.ts';
import { type CliContext, command } from '../../define/define-command.ts';

/** `MAX_BREAK_GLASS_SECONDS`; importing it would load the bundle's schemas with every command. */
const MAX_DURATION_MS = 86_400_000;

const SETTINGS = {
  authSite: required(text('--auth-site <name>', 'the Auth Site of the verifiers')),
  stateDirs: list(text('--state-dir <directory>', 'state directory of a verifier, or a copy of its mark')),
  readyzUrls: list(parsed(text('--readyz <url>', "a verifier's /readyz, in place of its mark"), readyzUrl)),
  ...SIGNING_KEYS,
  durationMs: required(
    duration('--for <duration>', 'how long the statement applies from now, 1s to 24h', {
      minMs: 1000,
      maxMs: MAX_DURATION_MS,
    }),
  ),
  revision: optional(
    integer(
      '--revision <number>',
      'revision that you expect; refused unless it is the highest that a verifier holds',
      {
        min: 1,
        max: Number.MAX_SAFE_INTEGER,
      },
    ),
  ),
  out: required(text('--out <file>', 'where to write the statement; replaced if it exists')),
};

function readyzUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && isBareHttpUrl(url)) return url;
  throw usageError('readyz_url_invalid', '--readyz must be http://HOST:PORT/readyz, without password');
}

export const bundleBreakGlassCommand = command({
  name: 'break-glass',
  summary: 'Sign that the bundle of the verifiers may be too old for a while',
  settings: SETTINGS,
  examples: [
    'proofgate bundle break-glass --auth-site shop-eu-1 --readyz http://10.0.0.7:9192/readyz --readyz http://10.0.0.8:9192/readyz --key offline.pem --for 1h --out break-glass.jws',
    'proofgate bundle break-glass --auth-site shop-eu-1 --state-dir /var/lib/proofgate --key offline.pem --for 1h --out break-glass.jws',
  ],
  run: ({ settings }, context) => breakGlass(settings, context),
});

async function breakGlass(settings: SettingValues<typeof SETTINGS>, { output }: CliContext): Promise<void> {
  const { highestOf, readInstances } = await import('../../bundle/instance-positions.ts');
  const { signBreakGlass } = await import('../../../bundle/authoring/publishing-documents.ts');
  const { replaceFile } = await import('../../../process/files/output-files.ts');
  const { authSite, durationMs, out, readyzUrls, stateDirs: stateDirectories } = settings;
  const signingKeys = await readSigningKeys(settings.keys);
  const [first, ...more] = await readInstances({ authSite, stateDirectories, readyzUrls });
  if (first === undefined) {
    throw usageError('instance_missing', 'give every verifier of the site: --state-dir or --readyz');
  }
  const { head, revision } = highestOf([first, ...more]);
  if (settings.revision !== undefined && settings.revision !== revision) {
    const message = `--revision ${settings.revision} is not ${revision}, the highest that a verifier holds`;
    throw new CliError('refused', 'revision_not_highest', message);
  }
  const nowSeconds = Math.floor(Date.now() / 1000);
  const from = formatTime(nowSeconds);
  const until = formatTime(nowSeconds + Math.floor(durationMs / 1000));
  const content = { auth_site: authSite, revision, head, from, until };
  await replaceFile({ path: out, content: signBreakGlass(content, signingKeys), mode: 0o644 });
  output.result([`revision ${revision}, head ${head}, until ${until}, in ${out}`], { ...content, file: out });
  const behind = [first, ...more].filter(({ position }) => position.revision < revision);
  if (behind.length > 0) {
    const names = behind.map(({ name }) => name).join(', ');
    output.note('instances_behind', `does not apply to these, which have a lower revision: ${names}`);
  }
}
