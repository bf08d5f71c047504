/** Reads an enrolled key's signing profiles from its enrollment state. */

import { formatMoment } from '../../protocol/rfc3339.ts';
import type { SigningProfiles } from '../../protocol/signing-profile.ts';
import { EnrollError } from './enroll-error.ts';
import type { EnrollmentState } from './enrollment-state.ts';
import { refusal } from './explanations.ts';

export interface EnrolledSigner {
  /** RFC 7638 thumbprint of the key in the file. */
  readonly keyThumbprint: string;
  /** Name of the key file, for errors. */
  readonly keyFile: string;
  readonly nowMs: number;
}

/** @throws EnrollError `enrollment_missing`, `enrollment_state_mismatch`, `enrollment_pending`, `key_expired`, `key_revoked` */
export function enrolledProfiles(
  kept: EnrollmentState | undefined,
  { keyThumbprint, keyFile, nowMs }: EnrolledSigner,
): SigningProfiles {
  const state = ownState(kept, keyThumbprint, keyFile);
  if (state.enrolled === undefined) {
    const text = `${keyFile} is not enrolled yet: run proofgate enroll to go on`;
    throw new EnrollError('pending', 'enrollment_pending', text);
  }
  const { key } = state.enrolled;
  if (key.status === 'revoked') throw refusal('key_revoked');
  if (key.status === 'expired' || nowMs >= key.expiresAtMs) {
    throw new EnrollError(
      'refused',
      'key_expired',
      `${keyFile} was enrolled until ${formatMoment(key.expiresAtMs)}: run proofgate enroll again`,
    );
  }
  return { coordinates: key.coordinates, profiles: key.profiles };
}

/**
 * Returns the state if it exists and belongs to this key.
 * @throws EnrollError `enrollment_missing`, `enrollment_state_mismatch`
 */
export function ownState(
  state: EnrollmentState | undefined,
  keyThumbprint: string,
  keyFile: string,
): EnrollmentState {
  if (state === undefined || (state.enrolled === undefined && state.attempt === undefined)) {
    throw new EnrollError(
      'usage',
      'enrollment_missing',
      `${keyFile} has no enrollment beside it: run proofgate enroll or proofgate agent; proofgate sign and request also take --broker-url or --profile-file`,
    );
  }
  if (state.keyThumbprint === keyThumbprint) return state;
  throw new EnrollError(
    'usage',
    'enrollment_state_mismatch',
    `the enrollment beside ${keyFile} is another key's: enroll this one`,
  );
}
