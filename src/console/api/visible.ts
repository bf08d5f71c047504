/** How texts are shown; those of workloads and operators with their invisible characters. */

/**
 * Control characters, line breaks, characters that change the text direction, and characters without a glyph: Unicode
 * categories C and Z except the space, and Default_Ignorable_Code_Point (UAX 44).
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

/** With a capital first letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Equivalent JSON with escapes for hidden characters. @param indent undefined for a single line */
export function visibleJson(value: unknown, indent?: number): string {
  // Outside of strings, the only hidden characters in JSON are its own line breaks.
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
