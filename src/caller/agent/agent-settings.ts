/** Settings of `proofgate agent`: those of `enroll` or of a broker's caller, the admin listener and the log level. */

import { usageError } from '../../process/program/errors.ts';
import type { Environment } from '../../process/program/output.ts';
import {
  adminListenSetting,
  type HostAndPort,
  parseHostAndPort,
} from '../../process/settings/listen-address.ts';
import {
  list,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
} from '../../process/settings/settings.ts';
import { DRAIN_AND_LOG_SETTINGS } from '../../process/settings/shutdown-settings.ts';
import { BROKER_CALL_SETTINGS, type BrokerCallPlan, brokerCallPlanOf } from '../broker/broker-settings.ts';
import { ENROLL_SETTINGS, type EnrollPlan, planOf } from '../enroll/enroll-settings.ts';

/** The agent generates a new key for each enrollment and always waits for activation. */
const { privateKeyFile: _given, waitForActivation: _waits, ...SHARED } = ENROLL_SETTINGS;

export const AGENT_SETTINGS = {
  ...SHARED,
  ...BROKER_CALL_SETTINGS,
  key: optional(text('--key <file>', 'key that is registered at the broker, instead of --spiffe-socket')),
  profileFile: optional(
    text('--profile-file <file>', "signing profiles, YAML or JSON; without it, the broker's"),
  ),
  audiences: list(text('--audience <audience>', 'audience of a passport, beside those of the profiles')),
  privateKeyOut: required(text('--private-key-out <file>', 'file for the key, with its state beside it')),
  forceReenroll: toggle(
    '--force-reenroll',
    'start with a new key even if the existing one is current',
    false,
  ),
  adminListen: adminListenSetting('127.0.0.1:9195'),
  logLevel: DRAIN_AND_LOG_SETTINGS.logLevel,
};
export type AgentValues = SettingValues<typeof AGENT_SETTINGS>;

export interface BrokerAgentPlan {
  readonly call: BrokerCallPlan;
  readonly keyFile: string;
  readonly profileFile: string | undefined;
  readonly audiences: readonly string[];
  readonly adminListen: HostAndPort;
}

const ENROLLING = ['controlUrl', 'policy', 'proofFile', 'kubernetesTokenFile'] as const;

/**
 * Undefined without `--broker-url`.
 * @throws CliError `set_control_url_or_broker_url`, `broker_url_required`, `bad_address`, and as `brokerCallPlanOf`
 */
export function brokerAgentPlanOf(values: AgentValues, env: Environment): BrokerAgentPlan | undefined {
  const { audiences, key, profileFile } = values;
  const call = brokerCallPlanOf(values, env);
  if (call === undefined) {
    if (key === undefined && profileFile === undefined && audiences.length === 0) return undefined;
    throw usageError('broker_url_required', '--key, --profile-file and --audience need --broker-url');
  }
  const enrolling = ENROLLING.find((name) => values[name] !== undefined);
  if (enrolling !== undefined) {
    const { flag } = AGENT_SETTINGS[enrolling];
    throw usageError(
      'set_control_url_or_broker_url',
      `--${flag} is for enrolling at Control, not for a broker`,
    );
  }
  const adminListen = parseHostAndPort('admin-listen', values.adminListen);
  return { call, keyFile: values.privateKeyOut, profileFile, audiences, adminListen };
}

export interface AgentPlan extends EnrollPlan {
  readonly adminListen: HostAndPort;
}

/** @throws CliError as `planOf` of `enroll`, or `bad_address` */
export function agentPlanOf(values: AgentValues): AgentPlan {
  const plan = planOf({ ...values, privateKeyFile: undefined, waitForActivation: true });
  return { ...plan, adminListen: parseHostAndPort('admin-listen', values.adminListen) };
}
