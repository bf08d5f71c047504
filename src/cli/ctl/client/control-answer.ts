/** Reads Control's answers: JSON objects, and problem documents as errors. Source: RFC 9457. */
import {
  isJsonObject,
  type JsonObject,
  jsonObjects,
  parseStrictJson,
} from '../../../protocol/strict-json.ts';
import { OperatorError, type OperatorFault } from './operator-error.ts';

export interface Answer {
  readonly statusCode: number;
  readonly etag: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly text: string;
}

export interface Resource<B = JsonObject> {
  readonly body: B;
  /** Undefined when the resource has no ETag. */
  readonly etag: string | undefined;
}

/** @throws OperatorError `answer_unexpected` */
export function resourceOf({ text, etag }: Answer): Resource {
  if (text === '') return { body: {}, etag };
  const body = parseBody(text);
  if (body === undefined) throw unexpected('not a JSON object');
  return { body, etag };
}

/** @throws OperatorError `answer_unexpected` */
export function itemsOf({ items }: JsonObject, path: string): readonly JsonObject[] {
  if (!Array.isArray(items)) throw unexpected(path);
  return jsonObjects(items);
}

function parseBody(text: string): JsonObject | undefined {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Control's own text of a problem. */
export function problemOf({ statusCode, text }: Answer): OperatorError {
  const problem = parseBody(text);
  const code = problem?.code;
  if (problem === undefined || typeof code !== 'string' || !/^[a-z0-9_]{1,64}$/.test(code)) {
    return new OperatorError(
      'unreachable',
      'answer_unexpected',
      `what answers at --control-url (status ${statusCode}) is no Control: check the URL`,
    );
  }
  const kind = statusCode === 503 || statusCode === 429 ? 'unreachable' : 'refused';
  const faults = faultsOf(problem);
  return new OperatorError(kind, code, oneLine(problem.detail ?? problem.title, faults), faults);
}

function faultsOf({ errors }: JsonObject): readonly OperatorFault[] {
  return jsonObjects(errors).map(({ pointer, reason }) => ({
    pointer: printable(String(pointer)),
    reason: printable(String(reason)),
  }));
}

function oneLine(text: unknown, [first]: readonly OperatorFault[]): string {
  const place = first === undefined ? '' : ` (${first.pointer}: ${first.reason})`;
  return printable(`${typeof text === 'string' ? text : 'refused'}${place}`);
}

/** Removes control characters, which could send commands to a terminal. */
function printable(line: string): string {
  return Array.from(line, (character) => (character < ' ' || character === '\x7f' ? ' ' : character))
    .join('')
    .slice(0, 1000);
}

export function unexpected(what: string): OperatorError {
  return new OperatorError('unreachable', 'answer_unexpected', `unexpected answer of Control: ${what}`);
}
