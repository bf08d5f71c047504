/**
 * The `ctl` command that does what a page does, to copy. Arguments may come from workloads, so that each is quoted for a
 * shell, and none may hold what a terminal or a reader would take for something else.
 */
import { isHidden, visible } from './visible.ts';

/** zsh replaces a word that begins with `=`. */
const PLAIN = /^(?!=)[\w./:@=,+-]+$/;
/** No shell can be given it. */
const REFUSED = '\0';

/** @returns undefined when an argument holds characters that must not be pasted into a terminal */
export function ctlCommand(controlUrl: string, words: readonly string[]): string | undefined {
  const all = ['proofgate', 'ctl', ...words, '--control-url', controlUrl];
  return all.some(isHidden) ? undefined : all.map(shellWord).join(' ');
}

/** A name that is an argument by itself. `ctl` would take one that begins with a hyphen for a flag: there is no command then. */
export function nameWord(name: string): string {
  return name.startsWith('-') ? REFUSED : name;
}

/**
 * Nothing is special between single quotes but the quote itself (POSIX shell, section 2.2.2) and, in fish, the backslash. Both
 * stand outside of the quotes, behind a backslash. A terminal acts on some hidden characters before any shell reads them: they
 * are made visible.
 */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${visible(text).replace(/['\\]/g, "'\\$&'")}'`;
}
