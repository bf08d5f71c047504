/** Settings of callers that get passports from a broker, and their valid combinations. */

import { usageError } from '../../process/program/errors.ts';
import type { Environment } from '../../process/program/output.ts';
import { choice, optional, type SettingValues, text } from '../../process/settings/settings.ts';
import { isCanonicalSubject } from '../../protocol/spiffe-id.ts';
import type { ServiceUrl } from '../service/service-url.ts';
import { parseBrokerUrl } from './broker-url.ts';

/** How an SVID proves the caller. Source: docs/operate/broker.md "Proofs". */
export const SVID_PROOFS = ['mtls', 'signed_form', 'jwt_svid'] as const;
export type SvidProof = (typeof SVID_PROOFS)[number];

export const BROKER_CALL_SETTINGS = {
  brokerUrl: optional(
    text('--broker-url <url>', "a broker's public URL: its passport instead of the key's own"),
  ),
  brokerCaFile: optional(
    text('--broker-ca-file <file>', "CA certificates (PEM) for the broker, instead of the system's"),
  ),
  brokerSpiffeId: optional(
    text('--broker-spiffe-id <id>', "SPIFFE ID of the broker's certificate, instead of its host name"),
  ),
  brokerProof: optional(
    choice('--broker-proof <kind>', 'how the SVID proves the caller, default mtls', SVID_PROOFS),
  ),
  spiffeSocket: optional(
    text(
      '--spiffe-socket <address>',
      'Workload API, unix:PATH or tcp://IP:PORT; without --key, SPIFFE_ENDPOINT_SOCKET is the default',
    ),
  ),
  svidId: optional(text('--svid-id <id>', 'which X.509-SVID, by its SPIFFE ID, where there are several')),
  svidHint: optional(text('--svid-hint <hint>', 'which X.509-SVID, by its hint')),
};
export type BrokerCallValues = SettingValues<typeof BROKER_CALL_SETTINGS>;

export type CallerSource =
  | { readonly kind: 'key'; readonly file: string }
  | {
      readonly kind: 'svid';
      readonly socket: string;
      readonly svidId: string | undefined;
      readonly svidHint: string | undefined;
      /** Undefined for the caller's default. */
      readonly proof: SvidProof | undefined;
    };

export interface BrokerCallPlan {
  readonly url: ServiceUrl;
  readonly caFile: string | undefined;
  readonly brokerSpiffeId: string | undefined;
  readonly source: CallerSource;
}

const WITHOUT_SVID = ['svidId', 'svidHint', 'brokerProof', 'brokerSpiffeId'] as const;

/**
 * Undefined without `--broker-url`.
 * @throws CliError `broker_url_required`, `caller_required`, `set_key_or_spiffe_socket`, `spiffe_socket_required`,
 *   `spiffe_id_invalid`, `set_broker_ca_file_or_spiffe_id`; BrokerError as `parseBrokerUrl`
 */
export function brokerCallPlanOf(
  values: BrokerCallValues & { readonly key: string | undefined },
  env: Environment,
): BrokerCallPlan | undefined {
  const { brokerCaFile: caFile, brokerSpiffeId, brokerUrl, svidId } = values;
  if (brokerUrl === undefined) {
    const settings = Object.entries(BROKER_CALL_SETTINGS);
    const given = settings.find(([name]) => values[name as keyof BrokerCallValues] !== undefined);
    if (given === undefined) return undefined;
    throw usageError('broker_url_required', `--${given[1].flag} needs --broker-url`);
  }
  for (const id of [svidId, brokerSpiffeId]) {
    if (id === undefined || (id.startsWith('spiffe://') && isCanonicalSubject(id))) continue;
    throw usageError('spiffe_id_invalid', `not a SPIFFE ID of a workload: ${id}`);
  }
  if (caFile !== undefined && brokerSpiffeId !== undefined) {
    throw usageError(
      'set_broker_ca_file_or_spiffe_id',
      "give --broker-ca-file, or --broker-spiffe-id, whose trust domain's authorities come from the Workload API",
    );
  }
  return { url: parseBrokerUrl(brokerUrl), caFile, brokerSpiffeId, source: sourceOf(values, env) };
}

function sourceOf(
  values: BrokerCallValues & { readonly key: string | undefined },
  env: Environment,
): CallerSource {
  const { brokerProof: proof, key, spiffeSocket, svidHint, svidId } = values;
  if (key !== undefined) {
    if (spiffeSocket !== undefined) {
      throw usageError(
        'set_key_or_spiffe_socket',
        'give --key, for a key that is registered at the broker, or --spiffe-socket, not both',
      );
    }
    const given = WITHOUT_SVID.find((name) => values[name] !== undefined);
    if (given === undefined) return { kind: 'key', file: key };
    const { flag } = BROKER_CALL_SETTINGS[given];
    throw usageError('spiffe_socket_required', `--${flag} is for --spiffe-socket, not for --key`);
  }
  const fromEnvironment = env.SPIFFE_ENDPOINT_SOCKET === '' ? undefined : env.SPIFFE_ENDPOINT_SOCKET;
  const socket = spiffeSocket ?? fromEnvironment;
  if (socket !== undefined) return { kind: 'svid', socket, svidId, svidHint, proof };
  throw usageError(
    'caller_required',
    'a broker needs to know who calls: give --spiffe-socket, or --key with a registered key',
  );
}
