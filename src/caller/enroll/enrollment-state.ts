/**
 * A workload's enrollment state, stored beside the key file. It contains no secret, and enough to resume after any
 * interruption. Source: docs/operate/cli.md "The state file".
 */

import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { isIdentifier, isKeyId } from '../../protocol/identifiers.ts';
import { type ObjectReader, oneOf, textThat } from '../../protocol/object-reader.ts';
import { formatMoment, isMoment } from '../../protocol/rfc3339.ts';
import {
  type RouteProfile,
  readRouteProfile,
  refuseDuplicates,
  type SigningCoordinates,
} from '../../protocol/signing-profile.ts';
import { PASSPORT_HEADER, PASSPORT_HEADER_MEMBER } from '../../protocol/wire-names.ts';
import type { EnrolledKey, EnrolledProfile } from '../service/wire-types.ts';

/** The Control and the policy of an enrollment. */
export interface EnrollmentTarget {
  /** Control's URL in the form that is signed. */
  readonly controlUrl: string;
  /** The opaque policy reference. */
  readonly policy: string;
}

/** An issued key. */
export interface EnrolledKeyRecord {
  readonly target: EnrollmentTarget;
  readonly enrollmentId: string;
  /** When Control accepted the submission. */
  readonly createdAtMs: number;
  readonly key: IssuedKey;
}

/** An enrollment without an outcome yet. */
export type Attempt =
  | {
      /** The submission may have reached Control. The client repeats it until the outcome is known. */
      readonly kind: 'submitting';
      readonly challengeId: string;
      readonly authSite: string;
      /** Encrypted by `sealChallenge`. */
      readonly sealedChallenge: string;
    }
  | {
      /** Control has the submission: the client polls it and never submits again. */
      readonly kind: 'submitted';
      readonly enrollmentId: string;
      readonly authSite: string;
      readonly createdAtMs: number;
    };

export interface EnrollmentState {
  /** RFC 7638 thumbprint of the key. */
  readonly keyThumbprint: string;
  /** Target of the last run and of its attempt. */
  readonly target: EnrollmentTarget;
  readonly enrolled: EnrolledKeyRecord | undefined;
  readonly attempt: Attempt | undefined;
  /** An attempt was abandoned without an outcome: Control may have issued something to the key. */
  readonly mayBeIssued?: true | undefined;
}

/** Storage of the state. */
export interface EnrollmentStates {
  /** Undefined without a stored state. */
  load(): Promise<EnrollmentState | undefined>;
  /** Replaces the state atomically and durably. */
  save(state: EnrollmentState): Promise<void>;
}

export function isSameTarget(a: EnrollmentTarget, b: EnrollmentTarget): boolean {
  return a.controlUrl === b.controlUrl && a.policy === b.policy;
}

/** Maximum share of a key's lifetime between renewal and expiry. */
const MAX_SKEW_SHARE = 0.15;
/** {@link MAX_SKEW_SHARE} of the maximum key lifetime, 24 h (specification "Limits"). */
export const MAX_REFRESH_SKEW_MS = 12_960_000;

/** When renewal of the key is due: `refreshSkewMs` before it expires, at most 15 % of its lifetime. */
export function refreshFromMs(
  { createdAtMs, key }: { readonly createdAtMs: number; readonly key: Pick<IssuedKey, 'expiresAtMs'> },
  refreshSkewMs: number,
): number {
  return key.expiresAtMs - Math.min(refreshSkewMs, maxRefreshSkewMs({ createdAtMs, key }));
}

/** The longest `refreshSkewMs` that has an effect on this key. */
export function maxRefreshSkewMs({
  createdAtMs,
  key,
}: {
  readonly createdAtMs: number;
  readonly key: Pick<IssuedKey, 'expiresAtMs'>;
}): number {
  return Math.max(key.expiresAtMs - createdAtMs, 0) * MAX_SKEW_SHARE;
}

/** Whether the key needs no new enrollment. */
export function isCurrent(record: EnrolledKeyRecord, refreshSkewMs: number, nowMs: number): boolean {
  return record.key.status === 'active' && nowMs < refreshFromMs(record, refreshSkewMs);
}

/**
 * Reads a derived key from Control's response or from the state file, with the members of
 * `service/wire-types.ts`. Unknown members are ignored, so that a newer Control can add some. Known
 * members are validated, because a signer relies on them.
 */

export type KeyStatus = EnrolledKey['status'];

export interface IssuedKey {
  readonly keyId: string;
  /** RFC 7638 thumbprint. */
  readonly fingerprint: string;
  readonly status: KeyStatus;
  readonly expiresAtMs: number;
  readonly clientId: string;
  readonly coordinates: SigningCoordinates;
  /** Empty when the client has no grant. */
  readonly profiles: readonly RouteProfile[];
}

/** Reads the members `derived_key` and `signing_profiles`. @throws the reader's error */
export function readIssuedKey(reader: ObjectReader, authSite: string): IssuedKey {
  const key = reader.object('derived_key');
  const keyId = key.required('key_id', isKeyId, 'a key ID');
  const profiles = reader.items('signing_profiles').map((item) => readRouteProfile(item));
  refuseDuplicates(reader, 'signing_profiles', profiles);
  return {
    keyId,
    fingerprint: key.required('fingerprint', textThat(isBase64urlOf32Bytes), 'a thumbprint'),
    status: key.required(
      'status',
      oneOf(['active', 'revoked', 'expired'] as const),
      'active, revoked or expired',
    ),
    expiresAtMs: Date.parse(key.required('expires_at', isMoment, 'a moment')),
    clientId: key.required('client_id', isIdentifier, 'an identifier'),
    coordinates: {
      authSite,
      keyId,
      issuer: key.required('issuer', isIdentifier, 'an identifier'),
      trustDomain: key.required('trust_domain', isIdentifier, 'an identifier'),
      subject: key.required('subject', isIdentifier, 'an identifier'),
      keyBinding: key.required('key_binding', oneOf(['software'] as const), 'software'),
    },
    profiles,
  };
}

export function isSameKey(a: IssuedKey, b: IssuedKey): boolean {
  return JSON.stringify(formatIssuedKey(a)) === JSON.stringify(formatIssuedKey(b));
}

/** Serializes the key so that {@link readIssuedKey} can read it. */
export function formatIssuedKey({ coordinates, profiles, ...key }: IssuedKey): {
  readonly derived_key: EnrolledKey;
  readonly signing_profiles: readonly EnrolledProfile[];
} {
  return {
    derived_key: {
      key_id: key.keyId,
      fingerprint: key.fingerprint,
      status: key.status,
      expires_at: formatMoment(key.expiresAtMs),
      client_id: key.clientId,
      issuer: coordinates.issuer,
      trust_domain: coordinates.trustDomain,
      subject: coordinates.subject,
      key_binding: 'software',
    },
    signing_profiles: profiles.map((profile) => ({
      name: profile.name,
      route_id: profile.routeId,
      method: profile.method,
      path_template: profile.template.text,
      audience: profile.audience,
      origins: [...profile.origins],
      signed_headers: [...profile.signedHeaders],
      body: profile.body,
      ...(profile.passportHeader === PASSPORT_HEADER ? { passport_header: PASSPORT_HEADER_MEMBER } : {}),
    })),
  };
}
