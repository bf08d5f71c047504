/** JSON Schema patterns for strings in a bundle, with a description of each. Source: docs/design/bundle.md "Content". */
import { TIME_PATTERN } from '../../protocol/rfc3339.ts';

export const IDENTIFIER_PATTERN = '^[!-~]{1,512}$';
export const KEY_ID_PATTERN = '^[!-~]{1,128}$';
export const SHA256_PATTERN = '^[A-Za-z0-9_-]{43}$';
export const METHOD_PATTERN = "^[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,32}$";
export const PATH_TEMPLATE_PATTERN = '^/[!-~]{0,2047}$';
export const SUBJECT_PREFIX_PATTERN = '^[!-~]{0,512}$';
export const SHARD_FILE_PATTERN = '^keys-[0-9]{4}\\.jsonl$';

/** Descriptions of the patterns, for messages. */
export const PATTERN_WORDS: ReadonlyMap<string, string> = new Map([
  [IDENTIFIER_PATTERN, '1 to 512 visible ASCII characters'],
  [KEY_ID_PATTERN, '1 to 128 visible ASCII characters'],
  [SHA256_PATTERN, '32 bytes in base64url'],
  [METHOD_PATTERN, 'a method, 1 to 32 characters of a token'],
  [PATH_TEMPLATE_PATTERN, 'a path of at most 2048 visible ASCII characters, beginning with "/"'],
  [SUBJECT_PREFIX_PATTERN, 'at most 512 visible ASCII characters'],
  [SHARD_FILE_PATTERN, 'a name such as keys-0001.jsonl'],
  [TIME_PATTERN, 'a time such as 2026-11-21T04:00:00Z'],
]);
