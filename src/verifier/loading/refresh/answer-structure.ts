/**
 * Whether a text is worth parsing as JSON. An answer of Control is some thousand strings at most; 64 MiB of nested lists
 * would hold the process up for seconds and fill its memory, on the word of a server that nothing has vouched for yet.
 */
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;

/** Counts what makes JSON large in memory: lists, objects, and what is in them. Strings are passed over. */
export function hasAtMostParts(json: Buffer, most: number): boolean {
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === COMMA || byte === OPEN_BRACKET || byte === OPEN_BRACE) count += 1;
    if (count > most) return false;
  }
  return true;
}

function endOfString(json: Buffer, start: number): number {
  let end = json.indexOf(QUOTE, start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf(QUOTE, end + 1);
  return end === -1 ? json.length : end;
}

/** Behind an odd number of backslashes. */
function isEscaped(json: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (json[at] === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 0;
}
