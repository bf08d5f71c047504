/** Settings of `proofgate dev`. Source: docs/operate/cli.md. */
import {
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../process/settings/settings.ts';

export const DEV_SETTINGS = {
  upstream: required(text('--upstream <url>', 'the API under development, such as http://127.0.0.1:3000')),
  listen: withDefault(text('--listen <address>', 'loopback address for clients'), '127.0.0.1:8000'),
  key: optional(
    text('--key <file>', 'where to create the key for clients; default: in a new temporary folder'),
  ),
};

export type DevSettings = SettingValues<typeof DEV_SETTINGS>;
