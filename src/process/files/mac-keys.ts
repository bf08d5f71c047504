/** Keys of MACs that replicas share, one a line: the first makes MACs, all verify them, so that replicas can change keys one by one. */

/** 32 random bytes in base64 have 44 characters, in base64url 43, in hex 64. The text itself is the MAC's key. */
const KEY_LINE = /^[A-Za-z0-9+/_=-]{43,1024}$/;
export const MAX_MAC_KEYS = 8;

export type MacKeys = readonly [Buffer, ...Buffer[]];

/** Undefined when a line is no key, or there are too many. */
export function parseMacKeys(text: string): MacKeys | undefined {
  const lines = text.split(/\r?\n/);
  const [first, ...others] = lines.map((line) => Buffer.from(line, 'latin1'));
  const isSound = lines.length <= MAX_MAC_KEYS && lines.every((line) => KEY_LINE.test(line));
  return first !== undefined && isSound ? [first, ...others] : undefined;
}
