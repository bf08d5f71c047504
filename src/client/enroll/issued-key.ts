/**
 * Reads a derived key from Control's response or from the state file, with the members of
 * `src/api-contract/enrollment-contract.ts`. Unknown members are ignored, so that a newer Control can add some. Known
 * members are validated, because a signer relies on them.
 */
import type { EnrolledKey, EnrolledProfile } from '../../api-contract/enrollment-contract.ts';
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { isIdentifier, isKeyId } from '../../protocol/identifiers.ts';
import type { ObjectReader } from '../object-reader.ts';
import {
  type RouteProfile,
  readRouteProfile,
  refuseDuplicates,
  type SigningCoordinates,
} from '../signing-profile.ts';
import { formatMoment, isMoment } from './moments.ts';

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
    fingerprint: key.required('fingerprint', isThumbprint, 'a thumbprint'),
    status: key.required('status', isKeyStatus, 'active, revoked or expired'),
    expiresAtMs: Date.parse(key.required('expires_at', isMoment, 'a moment')),
    clientId: key.required('client_id', isIdentifier, 'an identifier'),
    coordinates: {
      authSite,
      keyId,
      issuer: key.required('issuer', isIdentifier, 'an identifier'),
      trustDomain: key.required('trust_domain', isIdentifier, 'an identifier'),
      subject: key.required('subject', isIdentifier, 'an identifier'),
      keyBinding: key.required('key_binding', isSoftware, 'software'),
    },
    profiles,
  };
}

function isThumbprint(value: unknown): value is string {
  return typeof value === 'string' && isBase64urlOf32Bytes(value);
}

function isKeyStatus(value: unknown): value is KeyStatus {
  return value === 'active' || value === 'revoked' || value === 'expired';
}

function isSoftware(value: unknown): value is 'software' {
  return value === 'software';
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
    })),
  };
}
