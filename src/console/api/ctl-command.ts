/**
 * The `ctl` command that does what a page does, to copy. Arguments may come from workloads, so that each is quoted for a
 * POSIX shell, and none may hold what a terminal or a reader would take for something else.
 */
import { controlUrl } from './client';

const PLAIN = /^[\w./:@=,+-]+$/;
/** Control characters, line breaks, and what changes the direction of text or is not seen (Unicode categories C and Z but the space). */
const UNSAFE = /\p{C}|[^\P{Z} ]/u;

/** @returns undefined when an argument holds characters that must not be pasted into a terminal */
export function ctlCommand(...words: readonly string[]): string | undefined {
  const all = ['proofgate', 'ctl', ...words, '--control-url', controlUrl];
  return all.some((word) => UNSAFE.test(word)) ? undefined : all.map(shellWord).join(' ');
}

/** POSIX shell, section 2.2.2: nothing is special between single quotes but the quote itself. */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
