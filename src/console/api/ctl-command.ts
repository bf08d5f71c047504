/**
 * The `ctl` command for the action of a page, to copy. Arguments may come from workloads, so each is quoted for a shell
 * and must not contain characters that mislead a terminal or a reader.
 */
import { isHidden, visible } from './visible.ts';

/** A leading `=` is excluded, because zsh expands such words. */
const PLAIN = /^(?!=)[\w./:@=,+-]+$/;
/** An argument that no shell can pass. */
const REFUSED = '\0';

/** @returns undefined when an argument holds characters that must not be pasted into a terminal */
export function ctlCommand(controlUrl: string, words: readonly string[]): string | undefined {
  const all = ['proofgate', 'ctl', ...words, '--control-url', controlUrl];
  return all.some(isHidden) ? undefined : all.map(shellWord).join(' ');
}

/**
 * A name as a positional argument. There is no command for a name that begins with a hyphen, because `ctl` would read
 * it as a flag.
 */
export function nameWord(name: string): string {
  return name.startsWith('-') ? REFUSED : name;
}

/**
 * Between single quotes only the quote itself is special (POSIX shell, section 2.2.2) and, in fish, the backslash. Both
 * are placed outside the quotes and escaped with a backslash. Hidden characters are made visible, because a terminal
 * acts on some of them before a shell reads them.
 */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${visible(text).replace(/['\\]/g, "'\\$&'")}'`;
}
