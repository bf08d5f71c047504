/** Describes faults of invalid YAML and their remedy: a phrase for each error code of the library `yaml`. */
import type { ErrorCode } from 'yaml';

const OTHERWISE = 'this is not valid YAML: compare it with the lines around it';
const INDENT =
  'wrong indentation, or a bracket that is not closed: indent with spaces, like the lines beside it';
const MISSING = 'a quote, a bracket, a comma, a space or a colon is missing: add it';
const ONE_LINE = 'the name of a member must be on one line, with its colon: quote it';
const ANCHORS = 'an anchor, alias or tag is not allowed here: write the value out';

const FAULTS: { readonly [C in ErrorCode]?: string } = {
  ALIAS_PROPS: ANCHORS,
  BAD_ALIAS: ANCHORS,
  BAD_COLLECTION_TYPE: ANCHORS,
  BAD_DIRECTIVE: 'directives are not supported: remove the line that begins with %',
  BAD_DQ_ESCAPE: 'unknown escape in double quotes: double the backslash, or use single quotes',
  BAD_INDENT: INDENT,
  BAD_PROP_ORDER: ANCHORS,
  BAD_SCALAR_START: 'a value cannot begin with this character: quote the value',
  BLOCK_AS_IMPLICIT_KEY: 'a second colon on one line: quote the value, or give the inner member its own line',
  BLOCK_IN_FLOW: 'a list or object in brackets cannot hold lines with dashes or indentation: use one form',
  DUPLICATE_KEY: 'repeated member: remove one',
  KEY_OVER_1024_CHARS: 'the name of a member is longer than 1,024 characters: shorten it',
  MISSING_CHAR: MISSING,
  MULTILINE_IMPLICIT_KEY: ONE_LINE,
  MULTIPLE_ANCHORS: ANCHORS,
  MULTIPLE_DOCS: 'a second document begins here: keep one in a file, and remove ---',
  MULTIPLE_TAGS: ANCHORS,
  RESOURCE_EXHAUSTION: 'this is nested too deep: write it with fewer levels',
  TAB_AS_INDENT: 'a tab cannot indent: use spaces',
  TAG_RESOLVE_FAILED: 'tags are not supported: remove what begins with !',
  UNEXPECTED_TOKEN: 'unexpected text: quote the value, or remove what follows it',
};

export function yamlFaultText(code: ErrorCode): string {
  return FAULTS[code] ?? OTHERWISE;
}
