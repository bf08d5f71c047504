/**
 * What the command line and the browser both show while an operator signs in for the command line, so that a person sees
 * that the two belong together. Made of the S256 challenge, which the command line alone chose.
 * Source: docs/control.md "Operators".
 */
import { hash } from 'node:crypto';

/** Crockford's base 32, without the letters that look like digits. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const CHARACTERS = 8;

/** Such as `7Q2M-K4XD`: 40 bits of a SHA-256. @param challenge S256, base64url */
export function signInCode(challenge: string): string {
  const bytes = hash('sha256', `proofgate-sign-in-code-v1\n${challenge}\n`, 'buffer');
  const text = Array.from({ length: CHARACTERS }, (_, i) => DIGITS[(bytes[i] ?? 0) & 31]).join('');
  return `${text.slice(0, CHARACTERS / 2)}-${text.slice(CHARACTERS / 2)}`;
}
