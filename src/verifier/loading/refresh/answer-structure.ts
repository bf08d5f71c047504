/**
 * Limits the structure of a response before it is parsed as JSON. Control's responses hold some thousand strings at
 * most. Parsing 64 MiB of nested lists would block the process for seconds and fill its memory, and the response has
 * not been authenticated yet.
 */
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;

/** Counts what makes JSON large in memory: lists, objects, and their elements. Skips strings. */
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

/** Whether an odd number of backslashes precedes the quote. */
function isEscaped(json: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (json[at] === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 0;
}
