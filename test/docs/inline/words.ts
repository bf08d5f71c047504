/** Splits command lines into words like a shell, as far as sentences need it. */

/**
 * Splits `a "b c" && d` into two commands. It drops `…` and the brackets of optional words, and keeps placeholders (`<…>`) as
 * words.
 */
export function commandsIn(text: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]];
  const plain = text.replace(/(^|\s)…(?=\s|$)/g, ' ').replace(/\[([^\]]*)\]/g, '$1');
  for (const [word] of plain.matchAll(/&&|\|\||[;|]|(?:"[^"]*"|'[^']*'|[^\s"';|])+/g)) {
    if (/^(?:&&|\|\||[;|])$/.test(word)) commands.push([]);
    else commands.at(-1)?.push(word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'));
  }
  return commands.filter((words) => words.length > 0);
}
