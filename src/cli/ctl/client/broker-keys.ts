/** Compares the keys that a broker publishes with those that Control has pinned. Pure. Source: docs/operate/ctl.md "broker-keys". */
import { isKeyId } from '../../../protocol/identifiers.ts';
import { importPublicJwk } from '../../../protocol/import-public-key.ts';
import type { PublicKey } from '../../../protocol/public-key.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/strict-json.ts';
import type { Schemas } from './control-api.ts';
import { OperatorError } from './operator-error.ts';

/** A key as the definition of a broker holds it. */
export type PinnedEntry = Schemas['BrokerDefinition']['keys'][number];

/** A key by the name under which passports refer to it. */
export interface BrokerKey {
  readonly kid: string;
  readonly publicKey: PublicKey;
}

export interface KeyComparison {
  readonly added: readonly BrokerKey[];
  readonly removed: readonly BrokerKey[];
  readonly kept: readonly BrokerKey[];
  /** `keys` of the broker's definition when all of this is pinned. */
  readonly entries: readonly PinnedEntry[];
}

const MAX_KEYS = 64;

/**
 * The keys of one trust domain. Keys of other kinds than Ed25519 and P-256 are ignored: verifiers could not use them.
 * @param takesUnnamed whether keys that name no trust domain belong to it, as at brokers that serve only one
 * @throws OperatorError `broker_keys_invalid`
 */
export function readBrokerKeySet(
  keySet: JsonObject,
  trustDomain: string,
  takesUnnamed: boolean,
): readonly BrokerKey[] {
  if (!Array.isArray(keySet.keys)) throw invalid('it has no list of keys');
  const ours = keySet.keys.filter(
    (key) =>
      isJsonObject(key) &&
      (key.trust_domain === undefined ? takesUnnamed : key.trust_domain === trustDomain) &&
      (key.use === undefined || key.use === 'sig') &&
      (key.kty === 'OKP' || key.kty === 'EC'),
  );
  const keys = ours.map(readKey);
  if (keys.length === 0) {
    throw invalid(`it has no key for ${trustDomain}; remove the broker to end trust in it`);
  }
  if (keys.length > MAX_KEYS) throw invalid(`it has more than ${MAX_KEYS} keys`);
  const repeated = keys.find(({ kid }, index) => keys.findIndex((each) => each.kid === kid) !== index);
  if (repeated !== undefined) throw invalid(`kid ${repeated.kid} occurs twice`);
  return keys;
}

function readKey(key: JsonObject): BrokerKey {
  const { kid, kty, crv, x, y, alg } = key;
  if ('d' in key) throw invalid('it contains a private key, which everybody can read: replace that key');
  if (!isKeyId(kid)) throw invalid('a kid is not 1 to 128 visible ASCII characters');
  const publicKey = importPublicJwk(y === undefined ? { kty, crv, x } : { kty, crv, x, y });
  if (publicKey === undefined) throw invalid(`${kid} is no sound Ed25519 or P-256 key`);
  if (alg !== undefined && alg !== publicKey.algorithm) throw invalid(`${kid} is not a key of its alg`);
  return { kid, publicKey };
}

function invalid(why: string): OperatorError {
  return new OperatorError('refused', 'broker_keys_invalid', `the broker's key set cannot be pinned: ${why}`);
}

/** @param pinned `keys` of the broker's definition at Control */
export function compareKeys(pinned: readonly PinnedEntry[], published: readonly BrokerKey[]): KeyComparison {
  const held = pinned.flatMap((entry) => {
    const publicKey = importPublicJwk(entry.jwk);
    return publicKey === undefined || !isKeyId(entry.kid) ? [] : [{ kid: entry.kid, publicKey, entry }];
  });
  const kept = held.filter((one) => published.some((each) => isSameKey(one, each)));
  const added = published.filter((each) => !held.some((one) => isSameKey(one, each)));
  return {
    added,
    removed: held.filter((one) => !kept.includes(one)),
    kept,
    // Times of keys that stay, which an operator may have set, stay too.
    entries: [...kept.map(({ entry }) => entry), ...added.map(entryOf)],
  };
}

function isSameKey(one: BrokerKey, other: BrokerKey): boolean {
  return one.kid === other.kid && one.publicKey.thumbprint === other.publicKey.thumbprint;
}

function entryOf({ kid, publicKey }: BrokerKey): PinnedEntry {
  return { kid, alg: publicKey.algorithm, jwk: publicKey.jwk };
}
