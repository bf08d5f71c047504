/** Settings of `proofgate verifier`. Source: docs/operate/cli.md. */

import { socketAddress } from '../../../process/settings/listen-address.ts';
import {
  integer,
  list,
  optional,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../../process/settings/settings.ts';
import { SHUTDOWN_SETTINGS } from '../../../process/settings/shutdown-settings.ts';
import { AUDIT_SETTINGS } from '../../../verifier/assembly/audit-settings.ts';
import { DECISION_SETTINGS } from '../decision-settings.ts';
import { DPOP_SETTINGS } from '../dpop-settings.ts';
import {
  ADMIN_AND_REPLAY_SETTINGS,
  BUNDLE_SETTINGS,
  CAPTURE_SETTINGS,
  LOAD_SETTINGS,
} from '../enforcement-settings.ts';
import { OBSERVATION_SETTINGS } from '../observation-settings.ts';
import { HTTP_SETTINGS } from './ext-authz-http-settings.ts';

export const VERIFIER_SETTINGS = {
  ...BUNDLE_SETTINGS,
  listen: withDefault(
    socketAddress('--listen <address>', 'address of the gRPC port: HOST:PORT or unix:PATH'),
    '127.0.0.1:9191',
  ),
  tlsCertFile: optional(
    text('--tls-cert-file <file>', 'certificate (PEM) of the gRPC port; reloaded when it changes'),
  ),
  tlsKeyFile: optional(text('--tls-key-file <file>', 'private key (PEM) of that certificate')),
  tlsClientCaFile: optional(
    text(
      '--tls-client-ca-file <file>',
      'CA certificates (PEM) that client certificates on the gRPC port must come from',
    ),
  ),
  tlsClientSans: list(
    text('--tls-client-san <name>', 'URI or DNS name that a client certificate must have; default: any'),
  ),
  ...HTTP_SETTINGS,
  maxConnections: withDefault(
    integer(
      '--max-connections <count>',
      'maximum number of connections to the gRPC port, and to the HTTP port',
      {
        min: 1,
        max: 65_536,
      },
    ),
    '1024',
  ),
  grpcReflection: toggle('--grpc-reflection', 'enable gRPC server reflection', false),
  ...ADMIN_AND_REPLAY_SETTINGS,
  ...DECISION_SETTINGS,
  ...AUDIT_SETTINGS,
  ...CAPTURE_SETTINGS,
  ...OBSERVATION_SETTINGS,
  ...DPOP_SETTINGS,
  maxMessageBytes: withDefault(
    integer('--max-message-bytes <count>', 'maximum size of one check, headers and buffered body, bytes', {
      min: 65_536,
      max: 268_435_456,
    }),
    '4194304',
  ),
  ...LOAD_SETTINGS,
  workers: withDefault(
    integer('--workers <count>', 'number of verifier processes behind the address; more than 1 needs Redis', {
      min: 1,
      max: 64,
    }),
    '1',
  ),
  ...SHUTDOWN_SETTINGS,
};

export type VerifierSettings = SettingValues<typeof VERIFIER_SETTINGS>;
