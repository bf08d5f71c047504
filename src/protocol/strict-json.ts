/**
 * JSON in which no object names a member twice. RFC 8259 leaves duplicates open, parsers differ on which
 * one wins, and a signed document must say one thing only (RFC 7515 section 4, RFC 7519 section 4).
 */

/** Thrown for text that is not JSON, or that names a member twice; the message never quotes a value. */
export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';
  /** The member that occurs twice; undefined for every other fault. */
  readonly twice: string | undefined;

  constructor(message: string, twice?: string) {
    super(message);
    this.twice = twice;
  }
}

/** What text may hold at most; whatever holds more is refused before it is parsed. */
export interface JsonLimits {
  /** Objects and arrays within one another; 1: one object of plain values. */
  readonly maxDepth: number;
  /** Of all objects together. */
  readonly maxMembers: number;
}

const NO_LIMITS: JsonLimits = { maxDepth: Number.POSITIVE_INFINITY, maxMembers: Number.POSITIVE_INFINITY };

export type ReadJson =
  | { readonly kind: 'read'; readonly value: unknown }
  /** `beyond`: too many members, or nested too deep. `invalid`: no JSON; found early where that is cheap. */
  | { readonly kind: 'beyond' | 'invalid' }
  | { readonly kind: 'duplicate'; readonly member: string };

/** Parses; throws {@link StrictJsonError}. */
export function parseStrictJson(text: string): unknown {
  const read = readStrictJson(text, NO_LIMITS);
  if (read.kind === 'read') return read.value;
  if (read.kind !== 'duplicate') throw new StrictJsonError('not valid JSON');
  throw new StrictJsonError(`member ${JSON.stringify(read.member)} occurs twice in one object`, read.member);
}

/** The same for text from strangers: rubbish is told early, and an error with its stack costs more than all else. */
export function readStrictJson(text: string, limits: JsonLimits): ReadJson {
  const memberCount = countMembers(text, limits);
  if (typeof memberCount === 'string') return { kind: memberCount };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'invalid' };
  }
  // Of two members of one name the parser keeps one.
  if (countParsedMembers(value) === memberCount) return { kind: 'read', value };
  return { kind: 'duplicate', member: findDuplicateMember(text) ?? '' };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** In text that may not be JSON, which is told where brackets are left open. */
function countMembers(text: string, { maxDepth, maxMembers }: JsonLimits): number | 'beyond' | 'invalid' {
  let depth = 0;
  let members = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        if (depth > maxDepth) return 'beyond';
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        break;
      case COLON:
        members += 1;
        if (members > maxMembers) return 'beyond';
        break;
      case QUOTE:
        i = endOfString(text, i);
        break;
    }
  }
  return depth === 0 ? members : 'invalid';
}

/** Not by recursion: text may be nested deeper than the call stack is. */
function countParsedMembers(value: unknown): number {
  let members = 0;
  const open: object[] = typeof value === 'object' && value !== null ? [value] : [];
  for (let object = open.pop(); object !== undefined; object = open.pop()) {
    const values: readonly unknown[] = Array.isArray(object) ? object : Object.values(object);
    if (values !== object) members += values.length;
    for (const inner of values) if (typeof inner === 'object' && inner !== null) open.push(inner);
  }
  return members;
}

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

/** Where the string that begins at `start` ends; the end of the text where it does not. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end;
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charCodeAt(start - 1) === BACKSLASH) start -= 1;
  return (at - start) % 2 === 1;
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
