/** Reads the keys of a release: Ed25519, in the PEM files that `openssl genpkey` and `proofgate keygen` write. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { Failure } from '../failure.mjs';

const HOW_MADE = 'make one: openssl genpkey -algorithm ed25519 -out FILE';

/** @throws Failure `signing_key_missing`, `signing_key_unreadable`, `signing_key_open` */
export function readSigningKey(file) {
  if (!file)
    throw new Failure(
      'signing_key_missing',
      `name the file of the private key: make release KEY=FILE; ${HOW_MADE}`,
    );
  const text = readKeyFile(file, 'signing_key');
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new Failure('signing_key_open', `${file} may be read by others than its owner: chmod 600 ${file}`);
  }
  return parsedAs('signing_key', file, () => createPrivateKey(text));
}

/** @throws Failure `public_key_missing`, `public_key_unreadable` */
export function readPublicKey(file) {
  if (!file) {
    const text = 'name the file of the public key that you trust: make verify-release PUBLIC_KEY=FILE';
    throw new Failure('public_key_missing', text);
  }
  const text = readKeyFile(file, 'public_key');
  return parsedAs('public_key', file, () => {
    // A private key would work as well, but it should not be where releases are verified.
    if (text.includes('PRIVATE')) throw new Error('private');
    return createPublicKey(text);
  });
}

function readKeyFile(file, kind) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Failure(`${kind}_missing`, `${file} cannot be read (${error.code})`);
  }
}

/** An error does not repeat the key's text, which may contain part of the key. */
function parsedAs(kind, file, parse) {
  let key;
  try {
    key = parse();
  } catch {
    key = undefined;
  }
  if (key?.asymmetricKeyType === 'ed25519') return key;
  const what = kind === 'signing_key' ? 'a private key in PKCS#8' : 'a public key';
  throw new Failure(`${kind}_unreadable`, `${file} is not ${what} of Ed25519, as PEM and without a password`);
}
