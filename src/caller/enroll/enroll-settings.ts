/** Settings of `proofgate enroll`, and their valid combinations. Source: specification "Command-line tool". */

import { usageError } from '../../process/program/errors.ts';
import {
  aliased,
  duration,
  integer,
  optional,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../process/settings/settings.ts';
import type { EnrollRequest } from './enroll-run.ts';
import type { KeyChoice } from './enrollment-key.ts';
import { type EnrollmentTarget, MAX_REFRESH_SKEW_MS } from './enrollment-state.ts';

/** Default path of a Kubernetes service account token. */
export const KUBERNETES_TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';
const ENROLLMENT_PROVIDER = 'oidc_jwks';

const TIMING = { faultCode: 'invalid_enroll_timing' } as const;

export const ENROLL_SETTINGS = {
  controlUrl: optional(text('--control-url <url>', "Control's base URL; required to enroll")),
  policy: optional(
    aliased(
      text('--policy <reference>', 'enrollment policy, as Control gave it; required to enroll'),
      'enrollment-policy',
    ),
  ),
  provider: withDefault(text('--provider <name>', 'type of identity provider'), ENROLLMENT_PROVIDER),
  privateKeyFile: optional(text('--private-key-file <file>', 'enroll this key, PKCS#8 PEM of mode 0600')),
  privateKeyOut: optional(text('--private-key-out <file>', 'create a new key in this file and enroll it')),
  proofFile: optional(
    text('--proof-file <file>', "file with the service-account token that proves the workload's identity"),
  ),
  kubernetesTokenFile: optional(
    text(
      '--kubernetes-token-file <file>',
      `token file used without --proof-file (default: ${KUBERNETES_TOKEN_FILE})`,
    ),
  ),
  waitForActivation: toggle('--wait-for-activation', 'wait until the key is active', true),
  timeoutMs: withDefault(duration('--timeout <duration>', 'time limit of the whole run', TIMING), '5m'),
  pollIntervalMs: optional(
    duration(
      '--poll-interval <duration>',
      'first poll interval; grows to 30s (default: 2s, or --timeout where that is shorter)',
      TIMING,
    ),
  ),
  submitRetries: withDefault(
    integer('--submit-retries <count>', 'number of retries of a submission after a fault, at most 5', {
      min: 0,
      max: 5,
    }),
    '2',
  ),
  refreshSkewMs: withDefault(
    duration(
      '--refresh-skew <duration>',
      "enroll again this long before expiry, at most 15 % of the key's life",
      {
        ...TIMING,
        maxMs: MAX_REFRESH_SKEW_MS,
      },
    ),
    '5m',
  ),
  forceReenroll: toggle('--force-reenroll', 'enroll even if the key is current', false),
  controlCaFile: optional(text('--control-ca-file <file>', "CA certificates (PEM), instead of the system's")),
};
export type EnrollValues = SettingValues<typeof ENROLL_SETTINGS>;

export interface EnrollPlan extends Omit<EnrollRequest, 'key' | 'target'> {
  /** The target as given; its URL is not parsed yet. */
  readonly target: EnrollmentTarget;
  readonly keyChoice: KeyChoice;
  readonly tokenFile: string;
}

const DEFAULT_POLL_INTERVAL_MS = 2_000;
export const DEFAULT_REFRESH_SKEW_MS = 300_000;
/** Maximum timeout of one request to Control. */
const MAX_REQUEST_MS = 10_000;
/** A request gets at most a third of the total timeout, so that a lost answer leaves time for a retry. */
const REQUESTS_IN_TIMEOUT = 3;
const MAX_POLICY_CHARACTERS = 128;

/**
 * @throws CliError `control_url_and_policy_required`, `policy_invalid`, `unsupported_enrollment_provider`,
 *   `set_exactly_one_private_key_file_or_out`, `invalid_enroll_timing`, `set_proof_file_or_kubernetes_token_file`
 */
export function planOf(values: EnrollValues): EnrollPlan {
  const { provider, timeoutMs, submitRetries, refreshSkewMs } = values;
  const pollIntervalMs = values.pollIntervalMs ?? Math.min(DEFAULT_POLL_INTERVAL_MS, timeoutMs);
  const target = targetOf(values);
  if (provider !== ENROLLMENT_PROVIDER) {
    throw usageError('unsupported_enrollment_provider', `--provider must be ${ENROLLMENT_PROVIDER}`);
  }
  const keyChoice = keyChoiceOf(values);
  if (pollIntervalMs > timeoutMs) {
    throw usageError('invalid_enroll_timing', '--poll-interval must not be longer than --timeout');
  }
  return {
    target,
    provider,
    keyChoice,
    tokenFile: tokenFileOf(values),
    waitsForActivation: values.waitForActivation,
    timeoutMs,
    requestTimeoutMs: Math.min(MAX_REQUEST_MS, timeoutMs / REQUESTS_IN_TIMEOUT),
    pollIntervalMs,
    submitRetries,
    refreshSkewMs,
    forcesReenrollment: values.forceReenroll,
  };
}

function targetOf({ controlUrl, policy }: EnrollValues): EnrollmentTarget {
  if (controlUrl === undefined || policy === undefined) {
    throw usageError('control_url_and_policy_required', 'give both --control-url and --policy');
  }
  if (policy.length > MAX_POLICY_CHARACTERS || !/^[\x21-\x7e]+$/.test(policy)) {
    throw usageError(
      'policy_invalid',
      `--policy must be 1 to ${MAX_POLICY_CHARACTERS} visible ASCII characters`,
    );
  }
  return { controlUrl, policy };
}

function keyChoiceOf({ privateKeyFile, privateKeyOut }: EnrollValues): KeyChoice {
  if (privateKeyFile !== undefined && privateKeyOut === undefined)
    return { kind: 'use', file: privateKeyFile };
  if (privateKeyOut !== undefined && privateKeyFile === undefined)
    return { kind: 'make', file: privateKeyOut };
  throw usageError(
    'set_exactly_one_private_key_file_or_out',
    'give either --private-key-file, for a key that is there, or --private-key-out, for a new one',
  );
}

function tokenFileOf({ proofFile, kubernetesTokenFile }: EnrollValues): string {
  if (proofFile !== undefined && kubernetesTokenFile !== undefined) {
    throw usageError(
      'set_proof_file_or_kubernetes_token_file',
      'give --proof-file or --kubernetes-token-file, not both',
    );
  }
  return proofFile ?? kubernetesTokenFile ?? KUBERNETES_TOKEN_FILE;
}
