/**
 * Redaction of texts that may hold a secret: only the length is shown. A hash would not hide a PIN or a one-time code,
 * because all of them can be tried in a moment.
 */

/** `[24 characters]` */
export function redacted(value: string): string {
  return value.length === 1 ? '[1 character]' : `[${value.length} characters]`;
}

/** Visible ASCII and spaces as they are, everything else escaped: a terminal shows what is there and does nothing. */
export function quoted(value: string): string {
  return value.replace(/[^\x20-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}
