/**
 * Syntax of the small values that passports, transcripts and bundles share.
 * Source: docs/design/protocol.md "Passport" and "Transcript".
 */
import { type PassportHeader, VENDOR_PREFIX } from './wire-names.ts';

/** An identifier or identity: site, route, issuer, subject, audience, … */
const IDENTIFIER = /^[\x21-\x7e]{1,512}$/;
/** A `kid` or `key_id`. */
const KEY_ID = /^[\x21-\x7e]{1,128}$/;
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}$/;
const JTI = /^[A-Za-z0-9_-]{22,128}$/;
const POSITIVE_INTEGER = /^[1-9][0-9]{0,15}$/;
const SIGNED_HEADER_NAME = /^[a-z0-9][a-z0-9_-]{0,127}$/;

export function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && IDENTIFIER.test(value);
}

export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && KEY_ID.test(value);
}

/** A method token (RFC 9110 section 9.1), case-sensitive. */
export function isMethod(value: string): boolean {
  return METHOD.test(value);
}

/** 22 to 128 characters of the base64url alphabet; 22 hold 128 bits. */
export function isJti(value: string): boolean {
  return JTI.test(value);
}

/** Decimal, no sign, no leading zero, at most 2^53 - 1; undefined otherwise. */
export function parsePositiveInteger(text: string): number | undefined {
  if (!POSITIVE_INTEGER.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * Whether a transcript may sign the header: lower case, and not one of the credentials.
 * @param passportHeader the header that carries the passport
 */
export function isSignableHeaderName(name: string, passportHeader: PassportHeader): boolean {
  return SIGNED_HEADER_NAME.test(name) && name !== passportHeader && !name.startsWith(VENDOR_PREFIX);
}

/** Signer classes, weakest first (specification "Authentication", request plane 4). */
export const KEY_BINDINGS = ['software', 'attested_workload'] as const;
export type KeyBinding = (typeof KEY_BINDINGS)[number];

export function isKeyBinding(value: unknown): value is KeyBinding {
  return value === 'software' || value === 'attested_workload';
}

/** Whether a key of class `actual` satisfies a rule that needs at least `required`. */
export function satisfiesKeyBinding(actual: KeyBinding, required: KeyBinding): boolean {
  return actual === 'attested_workload' || required === 'software';
}
