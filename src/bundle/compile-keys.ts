/**
 * The keys of a bundle: those of brokers and derived ones, in one namespace.
 * Source: docs/bundle.md "Rules that a load enforces".
 */
import { importPublicKey, type PublicJwk, type PublicKey, parsePublicJwk } from '../protocol/public-key.ts';
import { attributesOf } from './compile-identities.ts';
import { type Faults, pointer, showValue } from './errors.ts';
import type { DerivedKeyContent, IssuerContent, IssuerKeyContent } from './schema.ts';
import type { BundleKey, ClientEntry, IssuerEntry, KeyTable } from './snapshot.ts';
import { parseTime } from './times.ts';

/** Checks a key and makes it ready to verify with; undefined when it is refused. */
export type KeyImporter = (jwk: PublicJwk) => PublicKey | undefined;

export interface KeyTableOptions {
  readonly clients: ReadonlyMap<string, ClientEntry>;
  /** Default: {@link importPublicKey}, which costs about a millisecond for Ed25519. */
  readonly importKey?: KeyImporter | undefined;
}

/** Fill it key by key, then hold it as a {@link KeyTable}. */
export class KeyTableBuilder implements KeyTable {
  readonly #keys = new Map<string, BundleKey>();
  readonly #clients: ReadonlyMap<string, ClientEntry>;
  readonly #importKey: KeyImporter;

  constructor({ clients, importKey }: KeyTableOptions) {
    this.#clients = clients;
    this.#importKey = importKey ?? importPublicKey;
  }

  get size(): number {
    return this.#keys.size;
  }

  get(keyId: string): BundleKey | undefined {
    return this.#keys.get(keyId);
  }

  /** @param path where the issuer stands in the document */
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
    const key = this.#import(entry.jwk, path, faults);
    if (key === undefined) return;
    if (key.algorithm !== entry.alg) {
      faults.add('key_algorithm', `${path}/alg`, `${showValue(entry.alg)}, but the key is ${key.algorithm}`);
    }
    const { kid: keyId } = entry;
    this.#keys.set(keyId, { kind: 'issuer_key', keyId, key, notBeforeSeconds, notAfterSeconds, issuer });
  }

  /** @param path where the key stands in its file */
  addDerivedKey(entry: DerivedKeyContent, path: string, faults: Faults): void {
    const expiresAtSeconds = requiredTime(entry.expires_at, `${path}/expires_at`, faults);
    const client = this.#clients.get(entry.client_id);
    if (client === undefined) {
      faults.add('client_unknown', `${path}/client_id`, `no client ${showValue(entry.client_id)}`);
    }
    this.#checkUnique(entry.key_id, `${path}/key_id`, faults);
    const key = this.#import(entry.jwk, path, faults);
    if (key === undefined || client === undefined) return;
    this.#keys.set(entry.key_id, {
      kind: 'derived_key',
      keyId: entry.key_id,
      key,
      status: entry.status,
      expiresAtSeconds,
      client,
      provenance: attributesOf(entry.provenance),
    });
  }

  #checkUnique(keyId: string, path: string, faults: Faults): void {
    if (this.#keys.has(keyId)) faults.add('duplicate', path, `key ${showValue(keyId)} occurs twice`);
  }

  #import(value: PublicJwk, path: string, faults: Faults): PublicKey | undefined {
    // The schema knows the members; this also knows the one canonical spelling of a coordinate.
    const jwk = parsePublicJwk(value);
    const key = jwk === undefined ? undefined : this.#importKey(jwk);
    if (key === undefined)
      faults.add('key_refused', `${path}/jwk`, 'not a sound Ed25519 or P-256 public key');
    return key;
  }
}

function optionalTime(text: string | undefined, path: string, faults: Faults): number | undefined {
  return text === undefined ? undefined : requiredTime(text, path, faults);
}

/** Seconds since the epoch; 0 beside the fault when there is no such moment. */
export function requiredTime(text: string, path: string, faults: Faults): number {
  const seconds = parseTime(text);
  if (seconds === undefined) faults.add('time_invalid', path, `${showValue(text)} is no moment`);
  return seconds ?? 0;
}
