/**
 * Text from a file that nobody vouches for, as a terminal may show it: control characters could hide what is there, or
 * speak to the terminal.
 */

/** Control, format and private-use characters, lone surrogates, unassigned ones, and the line breaks of Unicode. */
const INVISIBLE = /[\p{C}\u2028\u2029]/gu;

/** Each of them as `\u{…}`, its code point in hexadecimal; everything else as it is. Never holds a line break. */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** JSON whose strings are spelt with escapes for them: the same to whoever parses it. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(INVISIBLE, (character) =>
    Array.from({ length: character.length }, (_, i) => escapeUnit(character.charCodeAt(i))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
