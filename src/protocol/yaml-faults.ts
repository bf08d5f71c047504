/** What is wrong with a text that is not YAML, and what to do: one phrase for each code of the library, whose own words are for programmers. */
import type { ErrorCode } from 'yaml';

const OTHERWISE = 'this is not YAML: compare it with the lines around it';
const INDENT =
  'the indentation differs, or a bracket is not closed: indent with spaces, as the lines beside it';
const MISSING = 'a quote, a bracket, a comma, a space or a colon is missing: add it';
const ONE_LINE = 'the name of a member must be on one line, with its colon: quote it';
const ANCHORS = 'anchors, aliases and tags do not fit here: write the value out';

const FAULTS: { readonly [C in ErrorCode]?: string } = {
  ALIAS_PROPS: ANCHORS,
  BAD_ALIAS: ANCHORS,
  BAD_COLLECTION_TYPE: ANCHORS,
  BAD_DIRECTIVE: 'this directive is not taken: remove the line that begins with %',
  BAD_DQ_ESCAPE: 'this escape is not known in double quotes: double the backslash, or use single quotes',
  BAD_INDENT: INDENT,
  BAD_PROP_ORDER: ANCHORS,
  BAD_SCALAR_START: 'a value cannot begin with this character: quote the value',
  BLOCK_AS_IMPLICIT_KEY: 'a second colon on one line: quote the value, or give the inner member its own line',
  BLOCK_IN_FLOW: 'a list or object in brackets cannot hold lines with dashes or indentation: use one form',
  DUPLICATE_KEY: 'a member is there twice: remove one',
  KEY_OVER_1024_CHARS: 'the name of a member is longer than 1,024 characters: shorten it',
  MISSING_CHAR: MISSING,
  MULTILINE_IMPLICIT_KEY: ONE_LINE,
  MULTIPLE_ANCHORS: ANCHORS,
  MULTIPLE_DOCS: 'a second document begins here: keep one in a file, and remove ---',
  MULTIPLE_TAGS: ANCHORS,
  RESOURCE_EXHAUSTION: 'this is nested too deep: write it with fewer levels',
  TAB_AS_INDENT: 'a tab cannot indent: use spaces',
  TAG_RESOLVE_FAILED: 'tags are not taken: remove what begins with !',
  UNEXPECTED_TOKEN: 'this is not expected here: quote the value, or remove what follows it',
};

export function yamlFaultText(code: ErrorCode): string {
  return FAULTS[code] ?? OTHERWISE;
}
