/** Settings of `proofgate agent`: those of `enroll`, and the admin listener and log level. */

import { type HostAndPort, parseHostAndPort } from '../../program/listen-address.ts';
import { choice, required, type SettingValues, text, toggle, withDefault } from '../../program/settings.ts';
import { LOG_LEVELS } from '../../telemetry/log-level.ts';
import { ENROLL_SETTINGS, type EnrollPlan, planOf } from '../../workload/enroll-settings.ts';

/** The agent generates a new key for each enrollment and always waits for activation. */
const { privateKeyFile: _given, waitForActivation: _waits, ...SHARED } = ENROLL_SETTINGS;

export const AGENT_SETTINGS = {
  ...SHARED,
  privateKeyOut: required(text('--private-key-out <file>', 'file for the key, with its state beside it')),
  forceReenroll: toggle(
    '--force-reenroll',
    'start with a new key even if the existing one is current',
    false,
  ),
  adminListen: withDefault(
    text('--admin-listen <address>', '/livez, /readyz and /metrics, as HOST:PORT'),
    '127.0.0.1:9195',
  ),
  logLevel: withDefault(
    choice('--log-level <level>', 'level of the log on standard error', LOG_LEVELS),
    'info',
  ),
};
export type AgentValues = SettingValues<typeof AGENT_SETTINGS>;

export interface AgentPlan extends EnrollPlan {
  readonly adminListen: HostAndPort;
}

/** @throws CliError as `planOf` of `enroll`, or `bad_address` */
export function agentPlanOf(values: AgentValues): AgentPlan {
  const plan = planOf({ ...values, privateKeyFile: undefined, waitForActivation: true });
  return { ...plan, adminListen: parseHostAndPort('admin-listen', values.adminListen) };
}
