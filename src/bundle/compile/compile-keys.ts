/**
 * Compiles the keys of a bundle: brokers' and derived keys, in one namespace.
 * Source: docs/design/bundle.md "Rules that a load enforces".
 */
import { importPublicKey } from '../../protocol/import-public-key.ts';
import { type PublicJwk, type PublicKey, parsePublicJwk, sameJwk } from '../../protocol/public-key.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import { type Faults, pointer, showValue } from '../format/bundle-error.ts';
import type { DerivedKeyContent, IssuerContent, IssuerKeyContent } from '../format/schema.ts';
import { attributesOf } from './compile-identities.ts';
import type { LiveKeyTable, NewDerivedKey } from './key-table.ts';
import type { IssuerEntry, KeyTable } from './snapshot.ts';

/**
 * Validates a key and prepares it for verification; undefined when it is invalid.
 * @param keyId the key's name in the bundle
 */
export type KeyImporter = (jwk: PublicJwk, keyId: string) => PublicKey | undefined;

/** Reuses a key that the table holds under the same name: validation costs as much as a signature verification. */
export function reusingKeysOf(table: KeyTable | undefined, importKey: KeyImporter): KeyImporter {
  return (jwk, keyId) => {
    const known = table?.get(keyId)?.key;
    return known !== undefined && sameJwk(known.jwk, jwk) ? known : importKey(jwk, keyId);
  };
}

export interface KeyTableBuilderOptions {
  /** The clients must already be in it. */
  readonly table: LiveKeyTable;
  /** Default: {@link importPublicKey}. */
  readonly importKey?: KeyImporter | undefined;
  /** Derived keys that expire before this time, in seconds, are skipped: they would be removed at once. */
  readonly forgetBeforeSeconds?: number | undefined;
}

/** Adds keys to a table one by one. */
export class KeyTableBuilder {
  readonly #table: LiveKeyTable;
  readonly #importKey: KeyImporter;
  readonly #forgetBeforeSeconds: number;

  constructor({ table, importKey, forgetBeforeSeconds }: KeyTableBuilderOptions) {
    this.#table = table;
    this.#importKey = importKey ?? importPublicKey;
    this.#forgetBeforeSeconds = forgetBeforeSeconds ?? 0;
  }

  /** @param path the issuer's position in the document */
  addIssuerKeys(content: IssuerContent, issuer: IssuerEntry, path: string, faults: Faults): void {
    for (const [index, entry] of content.keys.entries()) {
      this.#addIssuerKey(entry, issuer, path + pointer('keys', index), faults);
    }
  }

  #addIssuerKey(entry: IssuerKeyContent, issuer: IssuerEntry, path: string, faults: Faults): void {
    const notBeforeSeconds = optionalTime(entry.not_before, `${path}/not_before`, faults);
    const notAfterSeconds = optionalTime(entry.not_after, `${path}/not_after`, faults);
    if (
      notBeforeSeconds !== undefined &&
      notAfterSeconds !== undefined &&
      notBeforeSeconds >= notAfterSeconds
    ) {
      faults.add('time_order', `${path}/not_after`, 'not after not_before');
    }
    this.#checkUnique(entry.kid, `${path}/kid`, faults);
    const key = importKeyAt(entry.jwk, entry.kid, path, this.#importKey, faults);
    if (key === undefined) return;
    if (key.algorithm !== entry.alg) {
      faults.add('key_algorithm', `${path}/alg`, `${showValue(entry.alg)}, but the key is ${key.algorithm}`);
    }
    const { kid: keyId } = entry;
    this.#table.addIssuerKey({
      kind: 'issuer_key',
      keyId,
      key,
      notBeforeSeconds,
      notAfterSeconds,
      issuer,
    });
  }

  /** @param path the key's position in its file */
  addDerivedKey(entry: DerivedKeyContent, path: string, faults: Faults): void {
    const expiresAtSeconds = requiredTime(entry.expires_at, `${path}/expires_at`, faults);
    const isKnownClient = this.#table.client(entry.client_id) !== undefined;
    if (!isKnownClient) faults.add('client_unknown', `${path}/client_id`, noClient(entry.client_id));
    this.#checkUnique(entry.key_id, `${path}/key_id`, faults);
    if (expiresAtSeconds < this.#forgetBeforeSeconds) return;
    const key = importKeyAt(entry.jwk, entry.key_id, path, this.#importKey, faults);
    if (key !== undefined && isKnownClient) {
      this.#table.putDerivedKey(compileDerivedKey(entry, key, expiresAtSeconds));
    }
  }

  #checkUnique(keyId: string, path: string, faults: Faults): void {
    if (this.#table.get(keyId) !== undefined) {
      faults.add('duplicate', path, `key ${showValue(keyId)} occurs twice`);
    }
  }
}

export function noClient(clientId: string): string {
  return `no client ${showValue(clientId)}`;
}

export function compileDerivedKey(
  entry: DerivedKeyContent,
  key: PublicKey,
  expiresAtSeconds: number,
): NewDerivedKey {
  return {
    keyId: entry.key_id,
    clientId: entry.client_id,
    key,
    status: entry.status,
    expiresAtSeconds,
    provenance: attributesOf(entry.provenance),
  };
}

/** @param path position of the entry with the `jwk` */
export function importKeyAt(
  value: PublicJwk,
  keyId: string,
  path: string,
  importKey: KeyImporter,
  faults: Faults,
): PublicKey | undefined {
  // The schema checks the members; this also requires the canonical encoding of coordinates.
  const jwk = parsePublicJwk(value);
  const key = jwk === undefined ? undefined : importKey(jwk, keyId);
  if (key === undefined) {
    faults.add('key_refused', `${path}/jwk`, 'not a sound Ed25519 or P-256 public key');
  }
  return key;
}

export function optionalTime(text: string | undefined, path: string, faults: Faults): number | undefined {
  return text === undefined ? undefined : requiredTime(text, path, faults);
}

/** Seconds since the epoch; adds a fault and returns 0 for an invalid time. */
export function requiredTime(text: string, path: string, faults: Faults): number {
  const seconds = parseTime(text);
  if (seconds === undefined) faults.add('time_invalid', path, `${showValue(text)} is no moment`);
  return seconds ?? 0;
}
