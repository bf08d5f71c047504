/** Packs base64url text into small integers, for tables that must not retain strings. */

const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const SEXTET_OF_CODE = new Uint8Array(128);
for (let value = 0; value < CHARACTERS.length; value += 1) {
  SEXTET_OF_CODE[CHARACTERS.charCodeAt(value)] = value;
}

/** Number of characters in one packed integer: 30 bits, which V8 stores without allocating. */
export const SEXTETS_PER_WORD = 5;

/**
 * Packs five base64url characters from `offset` into an integer of 30 bits. Characters outside the alphabet map to
 * others: two texts may share an integer, but one text always gives the same one.
 */
export function packSextets(text: string, offset: number): number {
  let word = 0;
  for (let index = offset; index < offset + SEXTETS_PER_WORD; index += 1) {
    word = (word << 6) | (SEXTET_OF_CODE[text.charCodeAt(index) & 127] ?? 0);
  }
  return word;
}

/** A keyed mix of two packed integers, 32 bits signed. Use the high bits; the low ones mix less. */
export function mixWords(first: number, second: number, seed: number): number {
  let mixed = Math.imul(first ^ seed, 0x9e3779b1);
  mixed = Math.imul((mixed ^ (mixed >>> 15)) + second, 0x85ebca77);
  return Math.imul(mixed ^ (mixed >>> 13) ^ seed, 0xc2b2ae3d);
}
