/**
 * Escapes untrusted text for a terminal: control characters could hide content or send commands to the terminal.
 */

/** Control, format and private-use characters, lone surrogates, unassigned characters, and Unicode line separators. */
const INVISIBLE = /[\p{C}\u2028\u2029]/gu;

/** Replaces each invisible character by `\u{…}` with its hexadecimal code point. The result has no line break. */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Serializes to JSON with invisible characters escaped; a parser reads the same value. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(INVISIBLE, (character) =>
    Array.from({ length: character.length }, (_, i) => escapeUnit(character.charCodeAt(i))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
