/**
 * A revocation receipt: a compact JWS (RFC 7515) in which Control says until when the verifiers of a site could allow requests of
 * a revoked key, with the values that this follows from. It is verified offline, with the site's receipt key.
 * Source: docs/operate/control.md "Revocation receipts".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { signMessage } from '../../protocol/signature.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import {
  hasExactMembers,
  isJsonObject,
  type JsonObject,
  parseStrictJson,
} from '../../protocol/strict-json.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';

const RECEIPT_TYPE = 'proofgate-revocation-receipt+jws';
const RECEIPT_FORMAT = 'proofgate.revocation-receipt/v1';
const MAX_RECEIPT_CHARACTERS = 16 * 1024 * 1024;
const ALGORITHM = 'Ed25519';
/** Times have whole seconds. */
const ROUNDING_SECONDS = 1;
/** Of any bundle. */
export const MAX_SKEW_SECONDS = 60;

/** What the receipt holds if the following holds: docs/operate/control.md says each in a sentence. */
export const RECEIPT_ASSUMPTIONS = [
  'signing_keys_at_control_alone',
  'clocks_within_skew',
  'limits_as_reported',
  'ledger_not_restored',
] as const;

/**
 * Until when verifiers may use any head without the revocation: the greatest of each value over all of them. Seconds since the
 * epoch, and seconds.
 */
export interface ReceiptBound {
  /** Of `expires_at` and the head's skew. */
  readonly expires_until: number;
  /** Of `issued_at` or `as_of` and the staleness of bounded routes; 0 without such routes. */
  readonly bounded_until: number;
  /** The same of realtime routes. */
  readonly realtime_until: number;
  /** Of `issued_at` and `as_of`. */
  readonly fresh_as_of: number;
  readonly skew_seconds: number;
  /** Longest `--realtime-staleness` of a verifier. */
  readonly realtime_staleness_seconds: number;
  /** Until when `expires_until` alone limits a verifier that reports no limit or has a break-glass key; 0 for none. */
  readonly unlimited_until: number;
}

/**
 * The first second, by any clock within the skew, in which no verifier uses any of the heads.
 * A verifier denies from `expires_at` + skew on, and after `issued_at` or `as_of` + staleness. Its clock may be behind.
 */
export function endOfUse(bound: ReceiptBound): number {
  const { bounded_until: bounded, expires_until: expires, fresh_as_of: fresh, skew_seconds: skew } = bound;
  const { realtime_staleness_seconds: staleness, realtime_until, unlimited_until: unlimited } = bound;
  const realtime = Math.min(realtime_until, fresh + staleness);
  return Math.min(expires, Math.max(bounded, realtime, unlimited)) + skew + ROUNDING_SECONDS;
}

/** The first second in which every verifier denies the key because it expired, whatever it knows of the revocation. */
export function endOfKey(expiresAtSeconds: number): number {
  return expiresAtSeconds + MAX_SKEW_SECONDS + ROUNDING_SECONDS;
}

export interface RevocationReceipt {
  readonly auth_site: string;
  readonly key_id: string;
  /** RFC 7638 thumbprint of the revoked key. */
  readonly thumbprint: string;
  /** Seconds since the epoch, as all times here. */
  readonly key_expires_at: number;
  readonly revoked_at: number;
  /** The first revision with the revocation; absent until it is published. */
  readonly revision?: number;
  readonly state: 'pending' | 'effective';
  readonly issued_at: number;
  /** No verifier allows a request that begins at this time or later; absent while unknown. */
  readonly no_use_from?: number;
  /** What `no_use_from` follows from; absent until the revocation is published. */
  readonly bound?: ReceiptBound;
  readonly targets: readonly ReceiptTarget[];
  /** Verifiers that did not acknowledge the revision and may allow requests, at most 100. */
  readonly waiting_for: readonly ReceiptInstance[];
  readonly assumptions: readonly string[];
}

export interface ReceiptTarget {
  readonly target_id: string;
  readonly state: string;
  /** Newest revision that each of its verifiers acknowledged. */
  readonly acked_revision?: number;
  readonly acked_at?: number;
  readonly has_revision: boolean;
}

export interface ReceiptInstance {
  readonly target_id: string;
  readonly instance_id: string;
  readonly acked_revision?: number;
}

/** @returns the compact JWS */
export function signReceipt(receipt: RevocationReceipt, key: SigningKey): string {
  const header = { typ: RECEIPT_TYPE, alg: ALGORITHM, kid: key.publicKey.thumbprint };
  const input = `${encode(header)}.${encode({ format: RECEIPT_FORMAT, ...receipt })}`;
  const signature = signMessage(ALGORITHM, key.privateKey, Buffer.from(input, 'latin1'));
  return `${input}.${signature.toString('base64url')}`;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export type ReceiptFault =
  | 'receipt_malformed'
  | 'receipt_type'
  | 'receipt_key_unknown'
  | 'receipt_signature_invalid'
  | 'receipt_inconsistent';

export type VerifiedReceipt =
  | { readonly kind: 'valid'; readonly receipt: RevocationReceipt }
  | { readonly kind: 'invalid'; readonly fault: ReceiptFault };

/**
 * Verifies the signature, then that `no_use_from` and `state` follow from the other members.
 * @param keys the site's receipt keys
 */
export function verifyReceipt(text: string, keys: readonly PublicKey[]): VerifiedReceipt {
  const invalid = (fault: ReceiptFault) => ({ kind: 'invalid', fault }) as const;
  const [encodedHeader, encodedPayload, encodedSignature, ...rest] = text
    .slice(0, MAX_RECEIPT_CHARACTERS)
    .split('.');
  const header = decode(encodedHeader);
  const signature = decodeBase64url(encodedSignature ?? '');
  if (header === undefined || signature === undefined || rest.length > 0) return invalid('receipt_malformed');
  if (!hasExactMembers(header, ['typ', 'alg', 'kid'])) return invalid('receipt_malformed');
  if (header.typ !== RECEIPT_TYPE || header.alg !== ALGORITHM) return invalid('receipt_type');
  const key = keys.find(({ algorithm, thumbprint }) => algorithm === ALGORITHM && thumbprint === header.kid);
  if (key === undefined) return invalid('receipt_key_unknown');
  const input = Buffer.from(`${encodedHeader}.${encodedPayload}`, 'latin1');
  if (!verifySignature(key, input, signature)) return invalid('receipt_signature_invalid');
  const payload = decode(encodedPayload);
  if (payload === undefined || payload.format !== RECEIPT_FORMAT) return invalid('receipt_malformed');
  // Signed by Control, which writes nothing else in this format.
  const receipt = payload as unknown as RevocationReceipt;
  return isConsistent(receipt) ? { kind: 'valid', receipt } : invalid('receipt_inconsistent');
}

function decode(encoded: string | undefined): JsonObject | undefined {
  const bytes = decodeBase64url(encoded ?? '');
  if (bytes === undefined) return undefined;
  try {
    const value = parseStrictJson(Buffer.from(bytes).toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isConsistent({ bound, issued_at, key_expires_at, no_use_from, state }: RevocationReceipt): boolean {
  const ends = [endOfKey(key_expires_at), ...(bound === undefined ? [] : [endOfUse(bound)])];
  const end = Math.min(...ends);
  if (no_use_from !== undefined && no_use_from !== end) return false;
  if (state === 'pending') return true;
  return state === 'effective' && no_use_from === end && issued_at >= end;
}
