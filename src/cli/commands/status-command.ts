/** `proofgate status`: shows a key's enrollment and whether verifiers already accept its requests, or its passports. */
import type { BrokerState } from '../../caller/broker/broker-state.ts';
import type { ReadinessQuestion } from '../../caller/enroll/enroll-with-files.ts';
import { MAX_REFRESH_SKEW_MS } from '../../caller/enroll/enrollment-state.ts';
import { CliError } from '../../process/program/errors.ts';
import {
  duration,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../process/settings/settings.ts';
import { type CliContext, command } from '../define/define-command.ts';

export const STATUS_SETTINGS = {
  key: required(text('--key <file>', 'the key that was enrolled')),
  controlUrl: optional(
    text('--control-url <url>', 'whom to ask instead of the Control that the key was enrolled at'),
  ),
  controlCaFile: optional(text('--control-ca-file <file>', "CA certificates (PEM), instead of the system's")),
  timeoutMs: withDefault(duration('--timeout <duration>', "for Control's answer", { maxMs: 60_000 }), '5s'),
  refreshSkewMs: withDefault(
    duration('--refresh-skew <duration>', 'as for enroll: what counts as near the end', {
      faultCode: 'invalid_enroll_timing',
      maxMs: MAX_REFRESH_SKEW_MS,
    }),
    '5m',
  ),
  offline: toggle('--offline', 'do not ask Control', false),
};
type Values = SettingValues<typeof STATUS_SETTINGS>;

export const statusCommand = command({
  name: 'status',
  summary: "Show a key's enrollment or passports, their expiry and whether it is ready",
  settings: STATUS_SETTINGS,
  examples: [
    'proofgate status --key /run/proofgate/key.pem',
    'proofgate status --key /run/proofgate/key.pem --offline --output json',
  ],
  run: ({ settings }, context) => showStatus(settings, context),
});

async function showStatus(settings: Values, { output }: CliContext): Promise<void> {
  const { describeStatus } = await import('../enroll/enroll-status.ts');
  const { askReadiness } = await import('../../caller/enroll/enroll-with-files.ts');
  const { readEnrolledKeyFile } = await import('../../caller/enroll/state-file.ts');
  const passports = await readKeptPassports(settings.key);
  if (passports !== undefined) {
    const { describePassports } = await import('../enroll/passport-status.ts');
    const { lines, object } = describePassports(passports, { keyFile: settings.key, nowMs: Date.now() });
    return output.result(lines, object);
  }
  const before = await readEnrolledKeyFile(settings.key);
  const question = { ...settings, stop: new AbortController().signal };
  const refreshing = settings.offline ? undefined : refreshed(settings.key, question, output);
  const answer = settings.offline ? undefined : await askReadiness(before.state, before.key, question);
  const { state } = (await refreshing) === true ? await readEnrolledKeyFile(settings.key) : before;
  if (answer?.kind === 'unknown') output.note('readiness_unknown', answer.text);
  const readiness = answer?.kind === 'known' ? answer.readiness : undefined;
  const { lines, object } = describeStatus(state, {
    keyFile: settings.key,
    refreshSkewMs: settings.refreshSkewMs,
    nowMs: Date.now(),
    readiness,
  });
  output.result(lines, object);
}

/** Whether Control's answer changed the key's state, such as its signing profiles. */
async function refreshed(
  keyFile: string,
  question: ReadinessQuestion,
  output: CliContext['output'],
): Promise<boolean> {
  const { refreshEnrolledKey } = await import('../../caller/enroll/refresh-enrollment.ts');
  try {
    return await refreshEnrolledKey(keyFile, question);
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'file_not_written') throw error;
    output.note('profiles_not_saved', `the signing profiles changed, and were not saved: ${error.message}`);
    return false;
  }
}

/**
 * Undefined for a key that no agent keeps with a broker. The answer comes from the file, without a request to the
 * broker.
 */
async function readKeptPassports(key: string): Promise<BrokerState | undefined> {
  const { readSigningKeyFile } = await import('../../process/files/key-files.ts');
  const { readBrokerState } = await import('../../caller/broker/broker-state-file.ts');
  const { settledKeyFile } = await import('../../caller/enroll/state-file.ts');
  const keyFile = await settledKeyFile(key);
  const { publicKey } = await readSigningKeyFile(keyFile);
  return readBrokerState(keyFile, publicKey.thumbprint);
}
