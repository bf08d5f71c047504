/** Settings of forward authentication over HTTP. Source: docs/operate/cli.md. */

import { socketAddress } from '../../../process/settings/listen-address.ts';
import { choice, list, optional, text, withDefault } from '../../../process/settings/settings.ts';
import { HTTP_BODY_MODES, HTTP_PROFILE_NAMES } from '../../ext-authz-http/profiles.ts';

export const HTTP_SETTINGS = {
  httpListen: optional(
    socketAddress('--http-listen <address>', 'address of the HTTP port, for proxies: HOST:PORT or unix:PATH'),
  ),
  httpProfile: optional(
    choice('--http-profile <proxy>', 'the proxy that asks on the HTTP port', HTTP_PROFILE_NAMES),
  ),
  httpSecretFile: optional(
    text('--http-secret-file <file>', 'file with the secret that nginx sends, one line'),
  ),
  httpBody: withDefault(
    choice(
      '--http-body <mode>',
      'removed: the proxy forwards no bodies to the API; forwarded: it sends them with the check',
      HTTP_BODY_MODES,
    ),
    'unknown',
  ),
  httpTlsCertFile: optional(
    text('--http-tls-cert-file <file>', 'certificate (PEM) of the HTTP port; reloaded when it changes'),
  ),
  httpTlsKeyFile: optional(text('--http-tls-key-file <file>', 'private key (PEM) of that certificate')),
  httpTlsClientCaFile: optional(
    text(
      '--http-tls-client-ca-file <file>',
      'CA certificates (PEM) that client certificates on the HTTP port must come from',
    ),
  ),
  httpTlsClientSans: list(
    text('--http-tls-client-san <name>', 'URI or DNS name that such a certificate must have; default: any'),
  ),
  httpTrustedProxies: list(
    text(
      '--http-trusted-proxy <cidr>',
      'network of the proxies; other connections to the HTTP port are closed',
    ),
  ),
};
