/** `proofgate keygen`: generates a key pair and writes it to files. */

import {
  choice,
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../process/settings/settings.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { type CliContext, command } from '../define/define-command.ts';

const SETTINGS = {
  out: required(text('--out <file>', 'where to create the private key, PKCS#8 PEM of mode 0600')),
  publicOut: optional(text('--public-out <file>', 'where to create the public key, a JWK')),
  algorithm: withDefault(choice('--alg <algorithm>', 'kind of key', ['Ed25519', 'ES256']), 'Ed25519'),
};

export const keygenCommand = command({
  name: 'keygen',
  summary: 'Make a key pair',
  settings: SETTINGS,
  examples: [
    'proofgate keygen --out signer.pem --public-out signer.jwk.json',
    'proofgate keygen --alg ES256 --out p256.pem --output json',
  ],
  run: ({ settings }, context) => makeKey(settings, context),
});

async function makeKey(settings: SettingValues<typeof SETTINGS>, { output }: CliContext): Promise<void> {
  const { generateSigningKey } = await import('../../protocol/signing.ts');
  const { privateKey, publicKey } = generateSigningKey(settings.algorithm);
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  await writeKeyFiles(settings, pem, publicKey);
  const { algorithm, thumbprint, jwk } = publicKey;
  output.result([`${algorithm} key ${thumbprint} in ${settings.out}`], {
    alg: algorithm,
    thumbprint,
    private_key_file: settings.out,
    public_key_file: settings.publicOut ?? null,
    jwk,
  });
}

/** Writes the public file first, so that a failure of the private one leaves no secret behind. */
async function writeKeyFiles(
  { out, publicOut }: SettingValues<typeof SETTINGS>,
  pem: string,
  { jwk, algorithm, thumbprint }: PublicKey,
): Promise<void> {
  const { removeFile, writeNewFile } = await import('../../process/files/output-files.ts');
  if (publicOut !== undefined) {
    const named = { ...jwk, alg: algorithm, kid: thumbprint };
    await writeNewFile({ path: publicOut, content: `${JSON.stringify(named, undefined, 2)}\n`, mode: 0o644 });
  }
  try {
    await writeNewFile({ path: out, content: pem, mode: 0o600 });
  } catch (error) {
    if (publicOut !== undefined) await removeFile(publicOut);
    throw error;
  }
}
