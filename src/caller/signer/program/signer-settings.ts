/** Settings of `proofgate signer`, and their valid combinations. Source: docs/operate/cli.md. */

import { readMountedSecret } from '../../../process/files/secret-files.ts';
import { usageError } from '../../../process/program/errors.ts';
import {
  adminListenSetting,
  type HostAndPort,
  parseHostAndPort,
} from '../../../process/settings/listen-address.ts';
import {
  choice,
  optional,
  type SettingValues,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import { DRAIN_AND_LOG_SETTINGS } from '../../../process/settings/shutdown-settings.ts';
import { AGENT_SETTINGS, type AgentValues } from '../../agent/agent-settings.ts';
import { PROOF_SETTING } from '../../sign/proof-setting.ts';
import { EGRESS_SETTINGS, type EgressPlan, planEgress } from './egress-plan.ts';
import { localAddress } from './local-address.ts';

const { adminListen: _admin, key: _key, logLevel: _log, privateKeyOut: _out, ...KEEPING } = AGENT_SETTINGS;

export const SIGNER_SETTINGS = {
  key: optional(
    text(
      '--key <file>',
      'key with its state beside it, reloaded; with --broker-url, the key registered there',
    ),
  ),
  privateKeyOut: optional(
    text('--private-key-out <file>', 'keep this key file, as the agent does: needs --policy or --broker-url'),
  ),
  ...EGRESS_SETTINGS,
  apiListen: optional(
    text(
      '--api-listen <address>',
      'signing API: unix:PATH, which only the owner can open, or loopback HOST:PORT',
    ),
  ),
  apiTokenFile: optional(
    text('--api-token-file <file>', 'bearer token of the signing API; required for HOST:PORT'),
  ),
  extAuthzListen: optional(
    text(
      '--ext-authz-listen <address>',
      'ext_authz gRPC for an egress Envoy: unix:PATH or loopback HOST:PORT',
    ),
  ),
  unsigned: withDefault(
    choice('--unsigned <choice>', 'what happens to a request that no profile fits', ['deny', 'pass']),
    'deny',
  ),
  proof: PROOF_SETTING,
  ...KEEPING,
  profileFile: optional(
    text(
      '--profile-file <file>',
      "signing profiles, YAML or JSON, reloaded; without it, those beside the key or the broker's",
    ),
  ),
  adminListen: adminListenSetting('127.0.0.1:9198'),
  ...DRAIN_AND_LOG_SETTINGS,
};
export type SignerSettings = SettingValues<typeof SIGNER_SETTINGS>;

export interface SignerPlan {
  readonly keyFile: string;
  /** File of signing profiles that replace those beside the key. */
  readonly profileFile: string | undefined;
  /** Undefined when another program keeps the key file. */
  readonly agent: AgentValues | undefined;
  readonly egress: EgressPlan | undefined;
  readonly api: { readonly listen: string; readonly token: string | undefined } | undefined;
  readonly extAuthzListen: string | undefined;
  readonly admin: HostAndPort;
}

/** @throws CliError `listener_required`, as `planEgress`, `key_id_missing`, `private_key_out_required`, `flag_required`, `bad_address`, `listen_not_loopback`, `api_token_file_required`, and for the token file */
export async function planSigner(settings: SignerSettings): Promise<SignerPlan> {
  const { adminListen, apiListen, extAuthzListen } = settings;
  const identity = planIdentity(settings);
  const egress = await planEgress(settings);
  if (egress === undefined && apiListen === undefined && extAuthzListen === undefined) {
    throw usageError('listener_required', 'give --listen, --api-listen or --ext-authz-listen');
  }
  return {
    ...identity,
    egress,
    api: apiListen === undefined ? undefined : await planApi(apiListen, settings),
    extAuthzListen: extAuthzListen && localAddress('ext-authz-listen', extAuthzListen),
    admin: parseHostAndPort('admin-listen', adminListen),
  };
}

function planIdentity(settings: SignerSettings): Pick<SignerPlan, 'agent' | 'keyFile' | 'profileFile'> {
  const { brokerUrl, controlUrl, key, policy, privateKeyOut, profileFile, proof } = settings;
  if (brokerUrl !== undefined && proof === 'http-message-signatures') {
    throw usageError(
      'key_id_missing',
      `--proof ${proof} needs a key with a key_id, not passports of a broker`,
    );
  }
  if (privateKeyOut !== undefined) {
    if (key !== undefined && brokerUrl === undefined) {
      throw usageError('broker_url_required', 'give --key or --private-key-out; both only with --broker-url');
    }
    // With a broker, the agent keeps the profiles beside the key.
    return { keyFile: privateKeyOut, profileFile: undefined, agent: { ...settings, privateKeyOut } };
  }
  if ([brokerUrl, controlUrl, policy].some((given) => given !== undefined)) {
    throw usageError(
      'private_key_out_required',
      'flags for enrolling or for a broker need --private-key-out',
    );
  }
  if (key !== undefined) return { keyFile: key, profileFile, agent: undefined };
  throw usageError('flag_required', '--key is required, or --private-key-out with --policy or --broker-url');
}

async function planApi(apiListen: string, { apiTokenFile }: SignerSettings) {
  const listen = localAddress('api-listen', apiListen);
  if (apiTokenFile === undefined && !listen.startsWith('unix:')) {
    throw usageError(
      'api_token_file_required',
      '--api-listen with a port needs --api-token-file: every user of this machine reaches a port',
    );
  }
  return { listen, token: apiTokenFile && (await readApiToken(apiTokenFile)) };
}

const API_TOKEN = /^[!-~]{16,4096}$/;

/** @throws CliError `token_file_invalid`, and as `readMountedSecret` */
async function readApiToken(path: string): Promise<string> {
  const token = await readMountedSecret(path);
  if (API_TOKEN.test(token)) return token;
  throw usageError(
    'token_file_invalid',
    `${path} does not contain exactly one token of at least 16 characters: openssl rand -hex 32`,
  );
}
