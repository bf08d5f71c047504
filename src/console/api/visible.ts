/** Text of a workload or an operator, with what is not seen in it made visible. */

/**
 * Controls, line breaks, what changes the direction of text, and what has no glyph: Unicode categories C and Z but the space,
 * and Default_Ignorable_Code_Point (UAX 44).
 */
const HIDDEN = /[\p{C}\p{DI}]|[^\P{Z} ]/u;
const ALL_HIDDEN = new RegExp(HIDDEN, 'gu');

export function isHidden(text: string): boolean {
  return HIDDEN.test(text);
}

/** `a⟨U+202E⟩b` */
export function visible(text: string): string {
  return text.replace(ALL_HIDDEN, (character) => `⟨U+${hex(character.codePointAt(0) ?? 0)}⟩`);
}

/** JSON that means the same, with escapes for what is hidden. @param indent undefined: one line */
export function visibleJson(value: unknown, indent?: number): string {
  // Outside of strings, JSON holds no hidden characters but its own line breaks.
  return (JSON.stringify(value, null, indent) ?? '').replace(ALL_HIDDEN, (character) =>
    character === '\n' ? character : escapes(character),
  );
}

function escapes(character: string): string {
  return Array.from({ length: character.length }, (_, at) => `\\u${hex(character.charCodeAt(at))}`).join('');
}

function hex(code: number): string {
  return code.toString(16).toUpperCase().padStart(4, '0');
}
