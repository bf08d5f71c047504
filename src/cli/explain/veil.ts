/**
 * How a text is shown that may hold a secret: by its length alone. No hash stands beside it, since whoever has a hash of
 * a PIN or a one-time code has the code: all of them are tried in a moment.
 */

/** `[24 characters]` */
export function veiled(value: string): string {
  return value.length === 1 ? '[1 character]' : `[${value.length} characters]`;
}

/** Visible ASCII and spaces as they are, everything else escaped: a terminal shows what is there and does nothing. */
export function quoted(value: string): string {
  return value.replace(/[^\x20-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}
