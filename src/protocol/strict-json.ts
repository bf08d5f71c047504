/**
 * JSON in which no object names a member twice. RFC 8259 leaves duplicates open, parsers differ on which
 * one wins, and a signed document must say one thing only (RFC 7515 section 4, RFC 7519 section 4).
 */

/** Thrown for text that is not JSON, or that names a member twice; the message never quotes a value. */
export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';
}

/** Parses; throws {@link StrictJsonError}. */
export function parseStrictJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new StrictJsonError('not valid JSON');
  }
  const duplicate = findDuplicateMember(text);
  if (duplicate !== undefined) {
    throw new StrictJsonError(`member ${JSON.stringify(duplicate)} occurs twice in one object`);
  }
  return value;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Walks text that JSON.parse has accepted; arrays stand on the stack as `null`. */
function findDuplicateMember(text: string): string | undefined {
  const open: (Set<string> | null)[] = [];
  let atName = false;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case OPEN_BRACE:
        open.push(new Set());
        atName = true;
        break;
      case OPEN_BRACKET:
        open.push(null);
        atName = false;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        atName = false;
        break;
      case COMMA:
        atName = open.at(-1) instanceof Set;
        break;
      case QUOTE: {
        const end = endOfString(text, i);
        if (atName) {
          const name: string = JSON.parse(text.slice(i, end + 1));
          const names = open.at(-1);
          if (names?.has(name)) return name;
          names?.add(name);
          atName = false;
        }
        i = end;
        break;
      }
    }
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text.charCodeAt(i) !== QUOTE) i += text.charCodeAt(i) === BACKSLASH ? 2 : 1;
  return i;
}

export type JsonObject = { readonly [name: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether the object has every required member and none beyond the optional ones. */
export function hasExactMembers(
  object: JsonObject,
  required: readonly string[],
  optional: readonly string[] = [],
): boolean {
  const names = Object.keys(object);
  return (
    required.every((name) => Object.hasOwn(object, name)) &&
    names.every((name) => required.includes(name) || optional.includes(name))
  );
}
