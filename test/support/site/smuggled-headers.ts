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

/** The name that an upstream reads if it compares only letters and digits. */
const lettersOf = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Equal for an upstream that drops punctuation: none, some left out, more than usual, and in other places. */
function withOtherPunctuation(name: string): readonly string[] {
  const capital = capitalised(name);
  return [
    lettersOf(name),
    capital.replaceAll('-', ''),
    name.replace('-', ''),
    name.replace(/-(?=[^-]*$)/, ''),
    name.replaceAll('-', '--'),
    `-${name}`,
    `.${name}-`,
    [...lettersOf(name)].join('-'),
  ];
}

function spellingsOf(name: string): readonly string[] {
  const [first = '', ...rest] = name.split('-');
  const spelled = SEPARATORS.map((separator) => name.replaceAll('-', separator));
  const mixed = SEPARATORS.map((separator) => `${first}${separator}${rest.join('-')}`);
  const lastOnly = name.replace(/-([^-]*)$/, '_$1');
  const cases = [capitalised(name), name.toUpperCase(), alternating(name)];
  return [...spelled, ...mixed, lastOnly, ...cases, ...withOtherPunctuation(name)];
}

const NAMES = [
  ...Object.values(CONTEXT_HEADERS),
  'x-proofgate',
  'x-proofgate-',
  'x-proofgate--subject',
  'x-proofgate-anything-else',
  'x-proofgate-reason',
  'x-proofgate-transcript-2',
  'x-proofgates',
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

const REWRITING = new Set(REQUEST_REWRITING_HEADERS.map(lettersOf));

/** Whether an upstream might take a name for one of ours, or for one that rewrites requests. */
export function isForbidden(name: string): boolean {
  const letters = lettersOf(name);
  return letters.startsWith('xproofgate') || REWRITING.has(letters);
}
