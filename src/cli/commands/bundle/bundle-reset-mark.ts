/** `proofgate bundle reset-mark`: clears the high-water mark, to recover from a revision that was accepted by mistake. */
import { hostname, userInfo } from 'node:os';
import { CliError, usageError } from '../../../process/program/errors.ts';
import type { Environment } from '../../../process/program/output.ts';
import { optional, required, type SettingValues, text, toggle } from '../../../process/settings/settings.ts';
import type { ResetMark } from '../../../verifier/loading/state/reset-mark.ts';
import { type SharedMark, SharedMarkError } from '../../../verifier/loading/state/shared-mark.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const SETTINGS = {
  stateDir: required(text('--state-dir <directory>', 'of the verifier, which must have been ended')),
  redis: optional(text('--redis <url>', "the verifier's Redis, as its --replay: the shared mark goes too")),
  redisPasswordFile: optional(
    text('--redis-password-file <file>', 'file with the password for Redis, one line, if the URL has none'),
  ),
  redisCaFile: optional(text('--redis-ca-file <file>', 'certificates (PEM) to trust with rediss://')),
  redisSentinelUser: optional(text('--redis-sentinel-user <name>', 'user name for the Sentinels')),
  redisSentinelPasswordFile: optional(
    text('--redis-sentinel-password-file <file>', 'file with the password for the Sentinels, one line'),
  ),
  confirm: optional(text('--confirm <site>', "the Auth Site's name once more")),
  yes: toggle('--yes', 'instead of --confirm, for scripts', false),
};
type Values = SettingValues<typeof SETTINGS>;

export const bundleResetMarkCommand = command({
  name: 'reset-mark',
  summary: "Forget the highest revision that a site's verifier accepted",
  positionals: { site: 'Auth Site whose mark is reset' },
  settings: SETTINGS,
  examples: [
    'proofgate bundle reset-mark shop-eu-1 --state-dir /var/lib/proofgate --confirm shop-eu-1',
    'PROOFGATE_REDIS=redis://:secret@redis.internal proofgate bundle reset-mark shop-eu-1 --state-dir /var/lib/proofgate --yes',
  ],
  run: ({ settings, positionals }, context) => reset(positionals.site, settings, context),
});

/** Timeout of Redis commands; the first one also waits for the connection. */
const SHARED_TIMEOUT_MS = 5000;

async function reset(authSite: string, settings: Values, { env, output }: CliContext): Promise<void> {
  assertConfirmed(authSite, settings);
  const { assertStateDirectory } = await import('../../../process/files/input-files.ts');
  const { resetMark } = await import('../../../verifier/loading/state/reset-mark.ts');
  await assertStateDirectory(settings.stateDir);
  const shared = await openShared(settings);
  const cleared = await resetMark({
    stateDirectory: settings.stateDir,
    authSite,
    shared,
    sharedTimeoutMs: SHARED_TIMEOUT_MS,
    by: invokingUser(env),
    now: () => new Date(),
  })
    .catch((error: unknown) => {
      throw fromSharedMarkError(error);
    })
    .finally(() => shared?.close());
  const { markMembers } = await import('../../../verifier/loading/state/reset-mark.ts');
  output.result(linesOf(authSite, cleared), {
    auth_site: authSite,
    own_mark: markMembers(cleared.own),
    shared_mark: cleared.shared === 'not_asked' ? 'not_asked' : markMembers(cleared.shared),
    kept_bundle: cleared.keptBundle ?? null,
  });
}

async function openShared(settings: Values): Promise<SharedMark | undefined> {
  if (settings.redis === undefined) return undefined;
  const { planRedis } = await import('../../../enforcement/programs/replay-plan.ts');
  const { createRedisSharedMark } = await import('../../../verifier/redis/redis-shared-mark.ts');
  return createRedisSharedMark(await planRedis('redis', settings.redis, settings));
}

/** The error when the shared mark could not be cleared. Nothing was changed, so the command can be repeated. */
function fromSharedMarkError(error: unknown): unknown {
  if (!(error instanceof SharedMarkError)) return error;
  return new CliError('unreachable', 'shared_mark_unavailable', `nothing was forgotten: ${error.message}`);
}

/** Requires a confirmation, because without the mark the verifier accepts older bundles again. */
function assertConfirmed(authSite: string, { confirm, yes }: Values): void {
  if (confirm !== undefined && confirm !== authSite) {
    throw usageError('confirmation_differs', `--confirm names another site than ${authSite}`);
  }
  if (confirm === undefined && !yes) {
    throw usageError(
      'confirmation_missing',
      `older bundles will be taken again: confirm with --confirm ${authSite}, or --yes`,
    );
  }
}

/** The operating system user, for the audit record. A container may have no name for its user. */
function invokingUser(env: Environment): { readonly [member: string]: string | number } {
  const uid = process.getuid?.();
  return {
    ...(uid === undefined ? {} : { uid }),
    ...userName(),
    ...(env.SUDO_USER === undefined ? {} : { sudo_user: env.SUDO_USER }),
    host: hostname(),
    pid: process.pid,
  };
}

function userName(): { readonly user?: string } {
  try {
    return { user: userInfo().username };
  } catch {
    return {};
  }
}

function linesOf(authSite: string, { own, shared, keptBundle }: ResetMark): readonly string[] {
  return [
    `auth site      ${authSite}`,
    `own mark       ${markText(own)}`,
    `shared mark    ${shared === 'not_asked' ? 'not asked for: --redis names where it is' : markText(shared)}`,
    `kept bundle    ${keptBundle === undefined ? 'there was none' : `${keptBundle} forgotten`}`,
  ];
}

function markText(mark: ResetMark['own']): string {
  if (mark === undefined) return 'there was none';
  return mark === 'unreadable'
    ? 'what was no mark forgotten'
    : `revision ${mark.revision}, head ${mark.head}, forgotten`;
}
