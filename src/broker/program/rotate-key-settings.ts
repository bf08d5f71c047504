/** Settings of `proofgate broker rotate-key`. Source: docs/operate/cli.md. */
import {
  choice,
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../process/settings/settings.ts';

export const ROTATE_KEY_SETTINGS = {
  keyDir: required(text('--key-dir <directory>', "the broker's key directory")),
  trustDomain: required(text('--trust-domain <name>', 'trust domain whose key to rotate')),
  algorithm: withDefault(
    choice('--alg <algorithm>', 'kind of the next key', ['Ed25519', 'ES256']),
    'Ed25519',
  ),
  activate: optional(text('--activate <key-id>', 'sign with this key from now on, instead of making one')),
  remove: optional(text('--remove <key-id>', 'delete this key, which is not in use, instead of making one')),
};
export type RotateKeySettings = SettingValues<typeof ROTATE_KEY_SETTINGS>;
