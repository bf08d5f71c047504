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

/** The longest text of a passport's part is shorter. */
const SCRATCH_BYTES = 8 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/**
 * The bytes as text, a character each (Latin-1); undefined as with {@link decodeBase64url}, and for more than 8 KiB.
 * Makes no buffer: that is the dearest part of reading a passport but for its JSON.
 */
export function decodeBase64urlText(text: string): string | undefined {
  const byteLength = scratch.write(text, 'base64url');
  if (scratch.toString('base64url', 0, byteLength) !== text) return undefined;
  return scratch.toString('latin1', 0, byteLength);
}

/** 32 bytes take 43 characters, of which the last holds four bits. */
const OF_32_BYTES = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Whether the text is the canonical spelling of 32 bytes: of a SHA-256, or of a coordinate of a public key. */
export function isBase64urlOf32Bytes(text: string): boolean {
  return OF_32_BYTES.test(text);
}
