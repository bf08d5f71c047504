/**
 * The code that command line and browser both show during an operator's sign-in, so that the operator can compare them.
 * It is derived from the S256 challenge, which only the command line chooses.
 * Source: docs/operate/control.md "Operators".
 */
import { hash } from 'node:crypto';

/** Crockford's base 32, without the letters that look like digits. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const CHARACTERS = 8;

/** A code such as `7Q2M-K4XD`: 40 bits of a SHA-256. @param challenge S256, base64url */
export function signInCode(challenge: string): string {
  const bytes = hash('sha256', `proofgate-sign-in-code-v1\n${challenge}\n`, 'buffer');
  const text = Array.from({ length: CHARACTERS }, (_, i) => DIGITS[(bytes[i] ?? 0) & 31]).join('');
  return `${text.slice(0, CHARACTERS / 2)}-${text.slice(CHARACTERS / 2)}`;
}
