/** Compares output in a document with the real output of the program, except for values that differ between runs. */
import { isJsonObject } from '../../../src/protocol/strict-json.ts';

/** Numbers, times and identifiers; `…` and `<…>` match anything. */
const VARIABLE =
  /[\w-]*…|\b\d+-[0-9a-f]{16}\b|<[^>]*>|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]*|\b(?:dk|enr|epr|ch)_[0-9a-z]+|\b[0-9a-f]{16,}\b|\d[\d:.TZ-]*/g;

/** @returns the first documented line or member that the output lacks; undefined when it has all */
export function unsaid(shown: string, said: string): string | undefined {
  if (/^HTTP\/1\.1 /.test(shown)) return unsaidOfAnswer(shown, said);
  const json = parsed(shown);
  return json === undefined
    ? unsaidLine(shown.split('\n'), said.split('\n'))
    : unsaidMember(json, lastJson(said), '');
}

/** Compares lines in order; the output may have others between them. */
function unsaidLine(shown: readonly string[], said: readonly string[]): string | undefined {
  let at = 0;
  for (const line of shown.filter((one) => /[^\s…]/.test(one))) {
    const pattern = patternOf(line.trim());
    const found = said.findIndex((one, index) => index >= at && pattern.test(one.trim()));
    if (found === -1) return line;
    at = found + 1;
  }
  return undefined;
}

/** Compares the paths of a listing in any order, and ignores words about them. */
export function unlisted(shown: string, said: string): string | undefined {
  const paths = shown
    .split(/\s+/)
    .filter((word) => /^(?!\/)[\w.…-]*[./…][\w./…-]*$/.test(word) && /\w/.test(word));
  return paths.find((path) => !new RegExp(patternOf(path.replace(/\/$/, '')).source.slice(1, -1)).test(said));
}

function patternOf(text: string): RegExp {
  const fixed = text
    .split(VARIABLE)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/ +/g, ' +'));
  return new RegExp(`^${fixed.join('.*')}$`);
}

function unsaidOfAnswer(shown: string, said: string): string | undefined {
  const [head = '', body = ''] = shown.split('\n\n');
  const [saidHead = '', saidBody = ''] = said.replaceAll('\r', '').split('\n\n');
  const lines = head.split('\n');
  const missing = lines.find((line) => unsaidLine([line], saidHead.split('\n')) !== undefined);
  return missing ?? unsaidMember(parsed(body), lastJson(saidBody), '');
}

/** Compares members, and texts except for their variable parts. */
function unsaidMember(shown: unknown, said: unknown, at: string): string | undefined {
  if (typeof shown === 'string' && typeof said === 'string')
    return patternOf(shown).test(said) ? undefined : at;
  if (typeof shown !== 'object' || shown === null) return typeof shown === typeof said ? undefined : at;
  if (Array.isArray(shown) !== Array.isArray(said) || !(isJsonObject(said) || Array.isArray(said))) return at;
  const [wanted, given] = [Object.entries(shown), new Map(Object.entries(said))];
  const others = [...given.keys()].filter((name) => !wanted.some(([one]) => one === name));
  if (others.length > 0) return `${at}: says ${others.join(', ')} too`;
  return wanted.map(([name, value]) => unsaidMember(value, given.get(name), `${at}/${name}`)).find(Boolean);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Other processes of the session may have written output before. */
function lastJson(said: string): unknown {
  const lines = said.trim().split('\n');
  for (let from = 0; from < lines.length; from += 1) {
    const value = parsed(lines.slice(from).join('\n'));
    if (value !== undefined) return value;
  }
  return undefined;
}
