/**
 * Parses Control's responses strictly: JSON without duplicate members, each known member with its type. Unknown members
 * are ignored. The result is undefined for a response that is not valid.
 * Source: docs/reference/openapi.json.
 */
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { oneOf, textLike, textThat } from '../../protocol/object-reader.ts';
import { READINESS_CONDITIONS, type ReadinessConditionName } from '../../protocol/readiness-conditions.ts';
import { Redacted } from '../../protocol/redacted.ts';
import { isMoment } from '../../protocol/rfc3339.ts';
import { isCode, parseAnswer } from '../service/json-answer.ts';
import { type IssuedKey, readIssuedKey } from './enrollment-state.ts';

export interface Challenge {
  readonly challengeId: string;
  readonly challenge: Redacted<string>;
  readonly authSite: string;
}

interface EnrollmentNames {
  readonly enrollmentId: string;
  readonly authSite: string;
  /** When Control accepted the submission: the key's lifetime starts here. */
  readonly createdAtMs: number;
}

export type Enrollment = EnrollmentNames &
  (
    | { readonly state: 'pending_approval' | 'expired' }
    | { readonly state: 'denied'; readonly denialCode: string }
    | { readonly state: 'issued'; readonly key: IssuedKey }
  );

export interface Readiness {
  readonly isReady: boolean;
  readonly conditions: readonly {
    readonly condition: ReadinessConditionName;
    readonly state: string;
    readonly isSatisfied: boolean;
    readonly since: string | undefined;
    readonly blockedBy: string | undefined;
  }[];
}

export const isEnrollmentId = textLike(/^[A-Za-z0-9_-]{1,64}$/);
export const isChallengeId = textLike(/^[\x21-\x7e]{1,64}$/);
const isShortText = textThat(({ length }) => length > 0 && length <= 512);
const isBoolean = oneOf([true, false]);
const isEnrollmentState = oneOf(['pending_approval', 'issued', 'denied', 'expired'] as const);

export function readChallenge(body: string): Challenge | undefined {
  return parseAnswer(body, (root) => ({
    challengeId: root.required('challenge_id', isChallengeId, 'an identifier'),
    challenge: new Redacted(
      root.required('challenge', textThat(isBase64urlOf32Bytes), '32 bytes of base64url'),
    ),
    authSite: root.required('auth_site', isIdentifier, 'an identifier'),
  }));
}

export function readEnrollment(body: string): Enrollment | undefined {
  return parseAnswer(body, (root) => {
    const names = {
      enrollmentId: root.required('enrollment_id', isEnrollmentId, 'an identifier'),
      authSite: root.required('auth_site', isIdentifier, 'an identifier'),
      createdAtMs: Date.parse(root.required('created_at', isMoment, 'a moment')),
    };
    const state = root.required('state', isEnrollmentState, 'a state');
    switch (state) {
      case 'issued':
        return { ...names, state, key: readIssuedKey(root, names.authSite) };
      case 'denied':
        return { ...names, state, denialCode: root.optional('denial_code', isCode, 'a code') ?? 'unknown' };
      default:
        return { ...names, state };
    }
  });
}

export function readReadiness(body: string): Readiness | undefined {
  return parseAnswer(body, (root) => ({
    isReady: root.required('ready', isBoolean, 'true or false'),
    conditions: root.items('conditions').map((item) => ({
      condition: item.required('condition', oneOf(READINESS_CONDITIONS), 'a condition'),
      state: item.required('state', isShortText, 'a state'),
      isSatisfied: item.required('satisfied', isBoolean, 'true or false'),
      since: item.optional('since', isMoment, 'a moment'),
      blockedBy: item.optional('blocked_by', isShortText, 'a text'),
    })),
  }));
}
