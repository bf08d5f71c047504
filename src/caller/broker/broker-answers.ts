/**
 * Parses a broker's answers strictly, and checks that a passport matches its request. Its signature is not
 * checked: only verifiers know the broker's key.
 * Source: docs/reference/broker-openapi.json.
 */

import { textLike } from '../../protocol/object-reader.ts';
import { parsePassport } from '../../protocol/passport.ts';
import { thumbprintOf } from '../../protocol/public-key.ts';
import { parseAnswer } from '../service/json-answer.ts';

const isChallenge = textLike(/^[A-Za-z0-9_-]{1,256}$/);

export function readChallenge(body: string): string | undefined {
  return parseAnswer(body, (root) => root.required('challenge', isChallenge, 'base64url'));
}

export interface IssuedPassport {
  /** Compact JWS. */
  readonly jws: string;
  readonly audience: string;
  readonly subject: string;
  readonly expiresAtMs: number;
  /** `exp - iat`. Counted from the moment of the answer, so it does not depend on this machine's clock. */
  readonly lifetimeMs: number;
}

export interface PassportWish {
  readonly audience: string;
  readonly holderThumbprint: string;
}

/** Undefined also for a passport of another audience or holder key. */
export function readPassport(body: string, wish: PassportWish): IssuedPassport | undefined {
  const jws = parseAnswer(body, (root) => root.required('passport', isCompactJws, 'a passport'));
  const claims = jws === undefined ? undefined : parsePassport(jws)?.claims;
  if (jws === undefined || claims === undefined || claims.audience !== wish.audience) return undefined;
  if (thumbprintOf(claims.holderJwk) !== wish.holderThumbprint) return undefined;
  const { expiresAtSeconds, issuedAtSeconds, subject } = claims;
  return {
    jws,
    audience: wish.audience,
    subject,
    expiresAtMs: expiresAtSeconds * 1000,
    lifetimeMs: (expiresAtSeconds - issuedAtSeconds) * 1000,
  };
}

/** Signing profile files, not parsed yet. */
export function readProfileDocuments(body: string): readonly unknown[] | undefined {
  return parseAnswer(body, (root) => root.required('profiles', isList, 'a list'));
}

const isCompactJws = textLike(/^[A-Za-z0-9_.-]{1,8192}$/);

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
