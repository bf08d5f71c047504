/** Parses a service's JSON answer strictly. The result is undefined for an answer that is not valid. */

import { ObjectReader, textLike } from '../../protocol/object-reader.ts';
import { parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';

/** A stable code, which is always safe to show. */
export const isCode = textLike(/^[a-z][a-z0-9_]{0,63}$/);

/** The `code` of a problem (RFC 9457). */
export function readProblemCode(body: string): string | undefined {
  return parseAnswer(body, (root) => root.required('code', isCode, 'a code'));
}

class AnswerFault extends Error {}

export function parseAnswer<T>(body: string, read: (root: ObjectReader) => T): T | undefined {
  try {
    return read(new ObjectReader(parseStrictJson(body), '', () => new AnswerFault()));
  } catch (error) {
    if (error instanceof AnswerFault || error instanceof StrictJsonError) return undefined;
    throw error;
  }
}
