/** Header names with which a caller might pass for verified, or have another request served than the checked one. */
import { CONTEXT_HEADERS, REQUEST_REWRITING_HEADERS } from '../../../src/protocol/wire-names.ts';

/** Every character that a header name may hold beside letters and digits (RFC 9110 section 5.6.2). */
const SEPARATORS = [..."-!#$%&'*+.^_`|~"];

function capitalised(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase());
}

function alternating(name: string): string {
  return [...name].map((letter, at) => (at % 2 === 0 ? letter : letter.toUpperCase())).join('');
}

/** The name that some upstreams treat as equal: `X_PROOFGATE_SUBJECT` in a CGI environment. */
export function cgiName(name: string): string {
  return name.toUpperCase().replace(/[^A-Z0-9]/g, '_');
}

function spellingsOf(name: string): readonly string[] {
  const [first = '', ...rest] = name.split('-');
  const spelled = SEPARATORS.map((separator) => name.replaceAll('-', separator));
  const mixed = SEPARATORS.map((separator) => `${first}${separator}${rest.join('-')}`);
  const lastOnly = name.replace(/-([^-]*)$/, '_$1');
  return [...spelled, ...mixed, lastOnly, capitalised(name), name.toUpperCase(), alternating(name)];
}

const NAMES = [
  ...Object.values(CONTEXT_HEADERS),
  'x-proofgate',
  'x-proofgate-',
  'x-proofgate--subject',
  'x-proofgate-anything-else',
  'x-proofgate-reason',
  'x-proofgate-transcript-2',
];

/** HTTP/1.1 spells them as they are here; HTTP/2 knows lower case only. */
export const SMUGGLED_NAMES: readonly string[] = [
  ...new Set([
    ...NAMES,
    ...spellingsOf(CONTEXT_HEADERS.subject),
    ...spellingsOf(CONTEXT_HEADERS.clientId),
    ...spellingsOf('x-proofgate-roles'),
    ...REQUEST_REWRITING_HEADERS.flatMap(spellingsOf),
  ]),
];

const FORBIDDEN = new Set(REQUEST_REWRITING_HEADERS.map(cgiName));

/** Whether an upstream might take a name for one of ours, or for one that rewrites requests. */
export function isForbidden(name: string): boolean {
  const cgi = cgiName(name);
  return cgi === 'X_PROOFGATE' || cgi.startsWith('X_PROOFGATE_') || FORBIDDEN.has(cgi);
}
