/**
 * Scans the two kinds of structured fields that HTTP Message Signatures use: dictionaries of inner lists, and
 * dictionaries of byte sequences. It accepts canonical serializations only, so a value has one spelling: no duplicate,
 * one space after each comma and between the members of a list, padded base64 without stray bits.
 * Source: RFC 9651 sections 3 and 4.1. Decimals, dates and display strings are refused: no field here has them.
 */

/** Maximum size of a field, checked before scanning. */
export const MAX_FIELD_BYTES = 8192;
export const MAX_DICTIONARY_MEMBERS = 32;

/** A string in an inner list. */
export interface ListedString {
  /** Between the quotes, as sent: escapes are not resolved. */
  readonly text: string;
  readonly hasParameters: boolean;
}

/** `label=("a" "b");p=1` */
export interface InnerListMember {
  readonly label: string;
  readonly items: readonly ListedString[];
  /** Serialized values by name; `?1` for a parameter without a value. */
  readonly parameters: ReadonlyMap<string, string>;
  /** The member without `label=`, as sent. */
  readonly value: string;
}

const KEY = '[a-z*][a-z0-9_.*-]*';
const STRING = String.raw`"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"`;
const INTEGER = '(?:0|-?[1-9][0-9]{0,14})(?![0-9.])';
const TOKEN = "[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*";
const BASE64 = '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?';
const LABEL = new RegExp(`(${KEY})=\\(`, 'y');
const LISTED = new RegExp(STRING, 'y');
const PARAMETER = new RegExp(`;(${KEY})(?:=(${STRING}|${INTEGER}|${TOKEN}|:${BASE64}:|\\?0))?`, 'y');
const BYTE_SEQUENCE_MEMBER = new RegExp(`^(${KEY})=:(${BASE64}):$`);

/** Parses a dictionary of inner lists of strings; undefined when it is not canonical, or too large. */
export function parseInnerLists(text: string): readonly InnerListMember[] | undefined {
  if (text.length > MAX_FIELD_BYTES) return undefined;
  const members: InnerListMember[] = [];
  const labels = new Set<string>();
  for (let at = 0; ; at += 2) {
    const scanned = scanMember(text, at);
    if (scanned === undefined || labels.has(scanned.member.label)) return undefined;
    labels.add(scanned.member.label);
    members.push(scanned.member);
    at = scanned.end;
    if (at === text.length) return members;
    if (members.length === MAX_DICTIONARY_MEMBERS || !text.startsWith(', ', at)) return undefined;
  }
}

function scanMember(text: string, start: number) {
  LABEL.lastIndex = start;
  const label = LABEL.exec(text)?.[1];
  if (label === undefined) return undefined;
  const valueStart = start + label.length + 1;
  const list = scanItems(text, LABEL.lastIndex);
  const scanned = list && scanParameters(text, list.end);
  if (list === undefined || scanned === undefined) return undefined;
  const { end, parameters } = scanned;
  return { member: { label, items: list.items, parameters, value: text.slice(valueStart, end) }, end };
}

/** @param start after the opening parenthesis */
function scanItems(text: string, start: number) {
  const items: ListedString[] = [];
  const seen = new Set<string>();
  let at = start;
  while (text[at] !== ')') {
    if (items.length > 0 && text[at++] !== ' ') return undefined;
    LISTED.lastIndex = at;
    const quoted = LISTED.exec(text)?.[0];
    const scanned = quoted === undefined ? undefined : scanParameters(text, at + quoted.length);
    if (quoted === undefined || scanned === undefined) return undefined;
    const whole = text.slice(at, scanned.end);
    if (seen.has(whole)) return undefined;
    seen.add(whole);
    items.push({ text: quoted.slice(1, -1), hasParameters: scanned.parameters.size > 0 });
    at = scanned.end;
  }
  return { items, end: at + 1 };
}

function scanParameters(text: string, start: number) {
  const parameters = new Map<string, string>();
  let at = start;
  while (text[at] === ';') {
    PARAMETER.lastIndex = at;
    const [whole, name, value = '?1'] = PARAMETER.exec(text) ?? [];
    if (whole === undefined || name === undefined || parameters.has(name)) return undefined;
    parameters.set(name, value);
    at += whole.length;
  }
  return { parameters, end: at };
}

/** The value of a serialized string; undefined for another type. */
export function stringOf(serialized: string | undefined): string | undefined {
  if (serialized?.[0] !== '"') return undefined;
  const inner = serialized.slice(1, -1);
  return inner.includes('\\') ? inner.replace(/\\(.)/g, '$1') : inner;
}

/** Serializes a string of characters 0x20 to 0x7e. */
export function serializeString(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** Parses a dictionary of byte sequences without parameters; undefined when it is not canonical, or too large. */
export function parseByteSequences(text: string): ReadonlyMap<string, Buffer> | undefined {
  if (text.length > MAX_FIELD_BYTES) return undefined;
  const members = text.split(', ', MAX_DICTIONARY_MEMBERS + 1);
  if (members.length > MAX_DICTIONARY_MEMBERS) return undefined;
  const sequences = new Map<string, Buffer>();
  for (const member of members) {
    const [, label, base64] = BYTE_SEQUENCE_MEMBER.exec(member) ?? [];
    if (label === undefined || base64 === undefined || sequences.has(label)) return undefined;
    sequences.set(label, Buffer.from(base64, 'base64'));
  }
  return sequences;
}

export function serializeByteSequences(sequences: Iterable<readonly [label: string, bytes: Buffer]>): string {
  return Array.from(sequences, ([label, bytes]) => `${label}=:${bytes.toString('base64')}:`).join(', ');
}
