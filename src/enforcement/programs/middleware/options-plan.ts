/** Validates the options of `Verifier.open` in the same way as `proofgate verifier` validates its settings. */

import { type CliError, usageError } from '../../../process/program/errors.ts';
import { integer, type Setting, settingValues, withDefault } from '../../../process/settings/settings.ts';
import { SHUTDOWN_SETTINGS } from '../../../process/settings/shutdown-settings.ts';
import type { Origin } from '../../../protocol/request-target.ts';
import { AUDIT_SETTINGS } from '../../../verifier/assembly/audit-settings.ts';
import type { VerifierSetup } from '../../../verifier/assembly/open-verifier.ts';
import { ORIGIN_AND_STALENESS } from '../decision-settings.ts';
import { DPOP_SETTINGS } from '../dpop-settings.ts';
import { planEnforcement } from '../enforcement-plan.ts';
import {
  ADMIN_AND_REPLAY_SETTINGS,
  BUNDLE_SETTINGS,
  CAPTURE_SETTINGS,
  LOAD_SETTINGS,
} from '../enforcement-settings.ts';
import { OBSERVATION_SETTINGS } from '../observation-settings.ts';
import type { VerifierOptions } from './verifier-options.ts';

export interface VerifierPlan {
  readonly setup: VerifierSetup;
  readonly externalOrigin: Origin;
  readonly maxBodyBytes: number;
}

const { otlpEndpoint: _noTracing, ...loadSettings } = LOAD_SETTINGS;
const { adminListen: _noListener, ...replaySettings } = ADMIN_AND_REPLAY_SETTINGS;

/** Settings that are options, by option. */
const OPTIONS = {
  ...BUNDLE_SETTINGS,
  ...DPOP_SETTINGS,
  ...replaySettings,
  ...ORIGIN_AND_STALENESS,
  ...AUDIT_SETTINGS,
  ...CAPTURE_SETTINGS,
  ...OBSERVATION_SETTINGS,
  ...loadSettings,
  maxBodyBytes: withDefault(
    integer('--max-body-bytes <count>', 'maximum size of a bound body', { min: 1, max: 1_073_741_824 }),
    '1048576',
  ),
};

const SETTINGS = { ...OPTIONS, ...LOAD_SETTINGS, ...ADMIN_AND_REPLAY_SETTINGS, ...SHUTDOWN_SETTINGS };

/** Options whose name is not that of the setting. */
const RENAMED: { readonly [setting: string]: string } = { controlTokenFile: 'tokenFile' };

const SETTING_OF_OPTION: ReadonlyMap<string, Setting<unknown>> = new Map(
  Object.entries(OPTIONS).map(([name, setting]) => [RENAMED[name] ?? name, setting]),
);
const OPTION_OF_FLAG: ReadonlyMap<string, string> = new Map(
  [...SETTING_OF_OPTION].map(([option, { flag }]) => [flag, option]),
);

/**
 * Reads the files that the options name; connects to nothing and writes nothing.
 * @throws CliError whose text names options
 */
export async function planVerifier(options: VerifierOptions): Promise<VerifierPlan> {
  const settings = settingValues(SETTINGS, textsOf(options));
  const { setup } = await planEnforcement(settings, false);
  const { externalOrigin } = setup;
  if (externalOrigin === undefined) throw usageError('flag_required', '--external-origin is required');
  // The middleware sees the caller's own Host, so it compares the Host instead of replacing it.
  return {
    setup: { ...setup, externalOrigin: undefined },
    externalOrigin,
    maxBodyBytes: settings.maxBodyBytes,
  };
}

/** Each option as it would be written on the command line, so that one parser reads both. */
function textsOf({ logger: _logger, ...options }: VerifierOptions): ReadonlyMap<string, readonly string[]> {
  const texts = new Map<string, readonly string[]>();
  for (const [option, value] of Object.entries(options)) {
    const setting = SETTING_OF_OPTION.get(option);
    if (setting === undefined) throw usageError('option_unknown', `there is no option ${option}`);
    if (value !== undefined) texts.set(setting.flag, textsOfValue(option, setting, value));
  }
  return texts;
}

function textsOfValue(option: string, setting: Setting<unknown>, value: unknown): readonly string[] {
  if (!setting.repeatable) return [textOf(option, setting, value)];
  if (!Array.isArray(value)) throw usageError('bad_option_type', `${option} must be a list`);
  return value.map((each: unknown) => textOf(option, setting, each));
}

function textOf(option: string, { fileScalar }: Setting<unknown>, value: unknown): string {
  // A duration has a unit on the command line and is in milliseconds here.
  const isDuration = option.endsWith('Ms');
  const type = isDuration ? 'number' : fileScalar;
  if (typeof value !== type) throw usageError('bad_option_type', `${option} must be a ${type}`);
  return isDuration ? `${value}ms` : String(value);
}

/** The text of an error, with options in the place of flags. */
export function explainOptions({ code, message }: CliError): {
  readonly code: string;
  readonly text: string;
} {
  const text = message.replace(
    /--([a-z][a-z0-9-]*)/g,
    (whole, flag: string) => OPTION_OF_FLAG.get(flag) ?? whole,
  );
  return { code: code === 'flag_required' ? 'option_required' : code, text };
}
