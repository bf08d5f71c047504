/**
 * Canonical base64url (RFC 4648 section 5): no padding, no white space, no stray bits in the last
 * character. Two spellings of one value would be two identifiers for one thing.
 */

/** The bytes, or undefined when the text is not the one canonical spelling of any bytes. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder skips what it does not know; encoding again shows whether it skipped anything.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Whether the text is the canonical spelling of exactly `byteLength` bytes. */
export function isBase64urlOf(text: string, byteLength: number): boolean {
  return decodeBase64url(text)?.length === byteLength;
}

/** 32 bytes take 43 characters, of which the last holds four bits. */
const SHA256 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Whether the text is the canonical spelling of a SHA-256. */
export function isSha256(text: string): boolean {
  return SHA256.test(text);
}
