/**
 * Canonical base64url (RFC 4648 section 5): no padding, no white space, no stray bits in the last character. Otherwise
 * one value would have several encodings, and one thing several identifiers.
 */

/** Decodes the text; undefined when it is not the canonical encoding of any bytes. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node.js' decoder skips unknown characters; encoding again shows whether it skipped any.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** The longest part of a valid passport is shorter. */
const SCRATCH_BYTES = 8 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/**
 * Decodes to text, one character for each byte (Latin-1); undefined as with {@link decodeBase64url}, and for more than
 * 8 KiB. Allocates no buffer, which is the most expensive part of reading a passport after its JSON.
 */
export function decodeBase64urlText(text: string): string | undefined {
  const byteLength = scratch.write(text, 'base64url');
  if (scratch.toString('base64url', 0, byteLength) !== text) return undefined;
  return scratch.toString('latin1', 0, byteLength);
}

/** 32 bytes take 43 characters; the last one holds four bits. */
const OF_32_BYTES = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Whether the text is the canonical encoding of 32 bytes, such as a SHA-256 or a coordinate of a public key. */
export function isBase64urlOf32Bytes(text: string): boolean {
  return OF_32_BYTES.test(text);
}
