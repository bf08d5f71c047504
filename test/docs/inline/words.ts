/** Command lines as a shell takes them apart, as far as sentences have them. */

/** `a "b c" && d` is two of them; what only says that there is more (`…`), may be there (`[…]`) or stands for something (`<…>`) is plain. */
export function commandsIn(text: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]];
  const plain = text.replace(/(^|\s)…(?=\s|$)/g, ' ').replace(/\[([^\]]*)\]/g, '$1');
  for (const [word] of plain.matchAll(/&&|\|\||[;|]|(?:"[^"]*"|'[^']*'|[^\s"';|])+/g)) {
    if (/^(?:&&|\|\||[;|])$/.test(word)) commands.push([]);
    else commands.at(-1)?.push(word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'));
  }
  return commands.filter((words) => words.length > 0);
}
