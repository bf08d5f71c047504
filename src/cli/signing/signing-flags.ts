/** Flags that `sign` and `request` share. Imports no heavy module: the work is in `signing-inputs.ts`. */
import {
  duration,
  list,
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../program/settings.ts';

export const SIGNING_POSITIONALS = {
  method: 'HTTP method, such as GET',
  url: 'URL exactly as it will be sent; nothing in it is rewritten',
};

export const SIGNING_SETTINGS = {
  key: required(text('--key <file>', 'private key, PKCS#8 PEM of mode 0600')),
  profileFile: optional(
    text(
      '--profile-file <file>',
      "signing profiles, YAML or JSON; without it, those of the key's enrollment",
    ),
  ),
  profile: optional(text('--profile <name>', 'which profile, where more than one fits')),
  routeId: optional(text('--route-id <id>', 'which profile, by its route')),
  bodyFile: optional(text('--body-file <file>', 'body of the request; - reads standard input')),
  headers: list(text('--header <line>', 'header of the request, "Name: value"'), '\n'),
  signHeaders: list(text('--sign-header <name>', "header to sign beyond the route's")),
  ttlMs: withDefault(
    duration('--ttl <duration>', 'life of proof and passport, whole seconds, at most 5m', {
      minMs: 1000,
      maxMs: 300_000,
    }),
    '60s',
  ),
  passportFile: optional(
    text('--passport-file <file>', 'passport from a broker, mode 0600, instead of one signed by the key'),
  ),
};

export type SigningValues = SettingValues<typeof SIGNING_SETTINGS>;
export type SigningPositionals = { readonly [N in keyof typeof SIGNING_POSITIONALS]: string };
