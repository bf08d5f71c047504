/**
 * Validates the settings that every program with a verifier has, and turns them into the options of its parts. Reads the files that they name; connects to
 * nothing and writes nothing, so that a mistake fails the start before anything is opened.
 */

import type { Signers } from '../../bundle/format/documents.ts';
import { assertStateDirectory, readCaFile } from '../../process/files/input-files.ts';
import { readPublicKeyFile } from '../../process/files/public-key-file.ts';
import { readBearerTokenFile } from '../../process/files/secret-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';
import { type HostAndPort, parseHostAndPort } from '../../process/settings/listen-address.ts';
import { isBareHttpUrl, mayCarrySecrets } from '../../process/settings/service-urls.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { planAudit } from '../../verifier/assembly/audit-settings.ts';
import type { BundleSetup } from '../../verifier/assembly/open-bundle.ts';
import type { CaptureSetup } from '../../verifier/assembly/open-captures.ts';
import type { VerifierSetup } from '../../verifier/assembly/open-verifier.ts';
import type { ControlConnectionOptions } from '../../verifier/loading/refresh/control-connection.ts';
import { ControlFailure } from '../../verifier/loading/refresh/control-failure.ts';
import { readDpopNonceKeys } from './dpop-settings.ts';
import type { EnforcementSettings } from './enforcement-settings.ts';
import { planObservations, planObservedPaths } from './observation-settings.ts';
import { planReplay } from './replay-plan.ts';

export interface EnforcementPlan {
  readonly admin: HostAndPort;
  readonly setup: VerifierSetup;
}

/**
 * @param isWorker whether a primary started this process
 * @throws CliError with exit code 2
 */
export async function planEnforcement(
  settings: EnforcementSettings,
  isWorker: boolean,
): Promise<EnforcementPlan> {
  return {
    admin: parseHostAndPort('admin-listen', settings.adminListen),
    setup: {
      externalOrigin: settings.externalOrigin,
      ...(await planBundle(settings, isWorker)),
      audit: await planAudit(settings),
      capture: await planCapture(settings, isWorker),
      holderQuotaPerMinute: settings.holderQuota,
      subjectQuotaPerMinute: settings.subjectQuota,
      maxInFlight: settings.maxInFlight,
      allowedObservations: planObservations(settings, Math.floor(Date.now() / 1000)),
      observedPaths: await planObservedPaths(settings.observePathsFile, settings.authSite),
    },
  };
}

async function planBundle(settings: EnforcementSettings, isWorker: boolean): Promise<BundleSetup> {
  const { authSite, bundle: directory, stateDir: stateDirectory } = settings;
  const replay = await planReplay(settings);
  const dpopNonceKeys = await readDpopNonceKeys(settings);
  const signers = await readSigners(settings);
  // A worker only reads this directory, because it must restart while the volume is read-only.
  if (!isWorker) await assertStateDirectory(stateDirectory);
  const control = await planControl(settings, isWorker);
  if (directory === undefined && control === undefined) {
    throw usageError('bundle_source_missing', 'give --bundle, --control-url or both');
  }
  const realtimeStalenessSeconds = Math.floor(settings.realtimeStalenessMs / 1000);
  const state = { stateDirectory, isWorker, directory, control };
  const dpopNonces = dpopNonceKeys === undefined ? 'single_verifier' : 'any';
  const dpop = { dpopNonceKeys, dpopNonces } as const;
  return { authSite, ...state, replay, realtimeStalenessSeconds, ...signers, ...dpop };
}

async function readSigners(settings: EnforcementSettings) {
  const { bundleThreshold, freshnessThreshold } = settings;
  const bundleKeys = await Promise.all(settings.bundleKeys.map(readPublicKeyFile));
  const freshnessKeys = await Promise.all(settings.freshnessKeys.map(readPublicKeyFile));
  const statedBy = freshnessKeys.length > 0 ? freshnessKeys : bundleKeys;
  const breakGlass = await planBreakGlass(settings, [...bundleKeys, ...freshnessKeys]);
  return {
    breakGlass,
    bundleSigners: signersOf(bundleKeys, bundleThreshold, 'bundle'),
    freshnessSigners: signersOf(statedBy, freshnessThreshold, 'freshness'),
  };
}

/**
 * A freshness key has no end and no precedence, so a break-glass key must sign nothing else.
 * @param others keys that sign bundles or freshness statements
 * @throws CliError `break_glass_incomplete`, `break_glass_key_shared`
 */
async function planBreakGlass(settings: EnforcementSettings, others: readonly PublicKey[]) {
  const { breakGlassFile: file, breakGlassKeys } = settings;
  if (file === undefined && breakGlassKeys.length === 0) return undefined;
  if (file === undefined || breakGlassKeys.length === 0) {
    throw usageError('break_glass_incomplete', '--break-glass-key and --break-glass-file need each other');
  }
  const keys = await Promise.all(breakGlassKeys.map(readPublicKeyFile));
  if (keys.some(({ thumbprint }) => others.some((other) => other.thumbprint === thumbprint))) {
    const text =
      'a --break-glass-key is also a --bundle-key or --freshness-key: make one that signs nothing else';
    throw usageError('break_glass_key_shared', text);
  }
  return { file, signers: { keys, threshold: 1 } };
}

/** @throws CliError `bundle_threshold_too_high`, `freshness_threshold_too_high`: no signature set could reach it */
function signersOf(keys: readonly PublicKey[], threshold: number, role: 'bundle' | 'freshness'): Signers {
  if (threshold > new Set(keys.map(({ thumbprint }) => thumbprint)).size) {
    const text = `--${role}-threshold is more than there are ${role} keys`;
    throw usageError(`${role}_threshold_too_high`, text);
  }
  return { keys, threshold };
}

/** @returns undefined when no Control is configured */
async function planControl(
  settings: EnforcementSettings,
  isWorker: boolean,
): Promise<ControlConnectionOptions | undefined> {
  const { allowPlainHttp, controlCaFile, controlTokenFile, controlUrl } = settings;
  if (controlUrl === undefined) return undefined;
  const url = URL.canParse(controlUrl) ? new URL(controlUrl) : undefined;
  if (url?.pathname !== '/' || url.search !== '' || !isBareHttpUrl(url)) {
    throw usageError(
      'control_url_invalid',
      '--control-url must be https://HOST[:PORT], without path or password',
    );
  }
  if (!mayCarrySecrets(url, allowPlainHttp)) {
    const text = '--control-url must be https://, or --allow-plain-http be given';
    throw usageError('control_url_not_https', text);
  }
  if (controlTokenFile === undefined) {
    throw usageError('control_token_file_missing', '--control-url needs --control-token-file');
  }
  // Only the primary connects. A worker that restarts must not fail because of a file that it does not need.
  const certificateAuthorities = isWorker ? undefined : await readCaFile(controlCaFile);
  return { url, readToken: () => readControlToken(controlTokenFile), certificateAuthorities };
}

async function readControlToken(path: string): Promise<string> {
  try {
    return await readBearerTokenFile(path);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new ControlFailure('control_token_unusable', `--control-token-file: ${error.message}`);
  }
}

/** @throws CliError `capture_denied_required`, `capture_denied_unusable` */
async function planCapture(
  { captureCredentials: keepsCredentials, captureDenied: directory }: EnforcementSettings,
  isWorker: boolean,
): Promise<CaptureSetup | undefined> {
  if (directory === undefined) {
    if (!keepsCredentials) return undefined;
    throw usageError('capture_denied_required', '--capture-credentials needs --capture-denied');
  }
  // A worker must restart even if the file cannot be written; it then only counts failures.
  if (!isWorker) await assertStateDirectory(directory, 'capture-denied');
  return { directory, keepsCredentials };
}
