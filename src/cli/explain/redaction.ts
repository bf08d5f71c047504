/**
 * Redacts texts that can contain a secret to their length. A hash would not hide a PIN or a one-time code, because all values
 * can be tried.
 */

/** `[24 characters]` */
export function redacted(value: string): string {
  return value.length === 1 ? '[1 character]' : `[${value.length} characters]`;
}

/** Escapes everything except visible ASCII and spaces, so that the text cannot send commands to a terminal. */
export function quoted(value: string): string {
  return value.replace(/[^\x20-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}
