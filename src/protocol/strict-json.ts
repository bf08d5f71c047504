/**
 * Parses JSON and rejects duplicate member names. RFC 8259 leaves duplicates open, parsers differ on which one wins,
 * and a signed document must have one meaning (RFC 7515 section 4, RFC 7519 section 4).
 */

/** Thrown for invalid JSON or a duplicate member; the message never quotes a value. */
export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';
  /** The duplicate member; undefined for every other error. */
  readonly twice: string | undefined;

  constructor(message: string, twice?: string) {
    super(message);
    this.twice = twice;
  }
}

/** Limits on the text, checked before parsing. */
export interface JsonLimits {
  /** Maximum nesting of objects and arrays; 1 means one object of plain values. */
  readonly maxDepth: number;
  /** Maximum number of members of all objects together. */
  readonly maxMembers: number;
}

const NO_LIMITS: JsonLimits = { maxDepth: Number.POSITIVE_INFINITY, maxMembers: Number.POSITIVE_INFINITY };

export type ReadJson =
  | { readonly kind: 'read'; readonly value: unknown }
  /** `beyond`: too many members, or nested too deep. `invalid`: not JSON; detected early where that is cheap. */
  | { readonly kind: 'beyond' | 'invalid' }
  | { readonly kind: 'duplicate'; readonly member: string };

/** Parses; throws {@link StrictJsonError}. */
export function parseStrictJson(text: string): unknown {
  const read = readStrictJson(text, NO_LIMITS);
  if (read.kind === 'read') return read.value;
  if (read.kind !== 'duplicate') throw new StrictJsonError('not valid JSON');
  throw new StrictJsonError(`member ${JSON.stringify(read.member)} occurs twice in one object`, read.member);
}

/** Parses untrusted text without throwing: an error with its stack costs more than everything else. */
export function readStrictJson(text: string, limits: JsonLimits): ReadJson {
  const memberCount = countMembers(text, limits);
  if (typeof memberCount === 'string') return { kind: memberCount };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'invalid' };
  }
  // The parser keeps only one of two members with the same name.
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

/** Counts members in text that may not be JSON; unbalanced brackets make it `invalid`. */
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

/** Iterative, because the nesting may exceed the call stack. */
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

/** Scans text that JSON.parse has accepted; `null` on the stack means an array. */
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

/** Offset of the closing quote of the string at `start`; the end of the text when there is none. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end;
}

/** Whether an odd number of backslashes precedes the character. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charCodeAt(start - 1) === BACKSLASH) start -= 1;
  return (at - start) % 2 === 1;
}

export type JsonObject = { readonly [name: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list; none when the value is no list. */
export function jsonObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
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
