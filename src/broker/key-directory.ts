/**
 * The rules of the broker's signing keys: one key in use for each trust domain, other keys published beside it, every key
 * ID unique. Pure: `src/broker/program/` reads the files.
 * Source: docs/operate/broker.md "Signing keys".
 */
import { isKeyId } from '../protocol/identifiers.ts';
import { signMessage } from '../protocol/signature.ts';
import type { SigningKey } from '../protocol/signing.ts';
import { TRUST_DOMAIN_PATTERN } from '../protocol/spiffe-id.ts';
import type { PassportSigningKey, PublishedKey, SigningKeys } from './broker-ports.ts';

/** The keys in the directory of one trust domain. */
export interface TrustDomainKeys {
  readonly trustDomain: string;
  readonly keys: readonly { readonly keyId: string; readonly key: SigningKey }[];
  /** The key ID in `current`; undefined without that file. */
  readonly current: string | undefined;
}

export type KeyDirectoryFault =
  | 'broker_keys_missing'
  | 'current_key_missing'
  | 'current_key_unknown'
  | 'key_id_invalid'
  | 'key_id_repeated'
  | 'key_repeated';

/** Thrown for keys that the broker cannot use. The message names files, never key material. */
export class KeyDirectoryError extends Error {
  override readonly name = 'KeyDirectoryError';
  readonly code: KeyDirectoryFault;

  constructor(code: KeyDirectoryFault, message: string) {
    super(message);
    this.code = code;
  }
}

/** No `/` and no leading `.`: a key ID is a file name. */
const KEY_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const TRUST_DOMAIN = new RegExp(TRUST_DOMAIN_PATTERN);

export function isKeyFileId(text: string): boolean {
  return KEY_ID.test(text) && isKeyId(text);
}

/** Whether a directory can have this name: a trust domain (SPIFFE-ID section 2.1) that does not look like a hidden file. */
export function isKeyDirectoryTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text) && !text.startsWith('.');
}

/** @throws KeyDirectoryError */
export function signingKeysOf(domains: readonly TrustDomainKeys[]): SigningKeys {
  rejectRepeatedKeys(domains);
  const current = new Map<string, PassportSigningKey>();
  const published: PublishedKey[] = [];
  for (const domain of domains) {
    const { trustDomain } = domain;
    for (const { keyId, key } of domain.keys)
      published.push({ keyId, trustDomain, publicKey: key.publicKey });
    current.set(trustDomain, currentKeyOf(domain));
  }
  return {
    current: (trustDomain) => current.get(trustDomain),
    published: () => published,
    trustDomains: () => [...current.keys()],
  };
}

/** With a single key, `current` is not needed. */
function currentKeyOf({ trustDomain, keys, current }: TrustDomainKeys): PassportSigningKey {
  const [only, ...others] = keys;
  if (only === undefined) throw new KeyDirectoryError('broker_keys_missing', `${trustDomain} has no key`);
  if (current === undefined && others.length > 0) {
    throw new KeyDirectoryError(
      'current_key_missing',
      `${trustDomain} has several keys and no current one: choose with proofgate broker rotate-key --activate`,
    );
  }
  const used = current === undefined ? only : keys.find(({ keyId }) => keyId === current);
  if (used === undefined) {
    throw new KeyDirectoryError(
      'current_key_unknown',
      `${trustDomain}/current names ${current}, which has no file there: choose with proofgate broker rotate-key --activate`,
    );
  }
  const { keyId, key } = used;
  const { publicKey, privateKey } = key;
  return {
    keyId,
    trustDomain,
    publicKey,
    // Returns a promise, like a key in a KMS, and turns an error into a rejection.
    sign: async (bytes) => signMessage(publicKey.algorithm, privateKey, bytes),
  };
}

/** A verifier finds a key by its ID, so an ID identifies one key, and a key belongs to one trust domain. */
function rejectRepeatedKeys(domains: readonly TrustDomainKeys[]): void {
  const places = new Map<string, string>();
  const thumbprints = new Map<string, string>();
  for (const { trustDomain, keys } of domains) {
    for (const { keyId, key } of keys) {
      const place = `${trustDomain}/${keyId}.pem`;
      if (!isKeyFileId(keyId)) {
        throw new KeyDirectoryError(
          'key_id_invalid',
          `${place}: a key ID has 1 to 128 of A-Z a-z 0-9 . _ - and begins with no dot`,
        );
      }
      const samePlace = places.get(keyId);
      if (samePlace !== undefined) {
        throw new KeyDirectoryError(
          'key_id_repeated',
          `${place} has the key ID of ${samePlace}: key IDs are unique among all trust domains`,
        );
      }
      const sameKey = thumbprints.get(key.publicKey.thumbprint);
      if (sameKey !== undefined) {
        throw new KeyDirectoryError('key_repeated', `${place} is the key of ${sameKey}: make another one`);
      }
      places.set(keyId, place);
      thumbprints.set(key.publicKey.thumbprint, place);
    }
  }
}
