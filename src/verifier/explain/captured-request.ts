/**
 * Reads the input of `explain`: a CheckRequest, an audit event with method, path and headers, the output of `sign`, or an
 * audit event alone. Requests are converted to the CheckRequest that Envoy sends, so that the ext_authz code reads them
 * like any other.
 * Source: docs/operate/explain.md "The input".
 */

import type { CheckRequest, HeaderValue } from '../../process/ext-authz/request-messages.ts';
import { isBodyBearing } from '../../protocol/body-binding.ts';
import { parseMoment } from '../../protocol/rfc3339.ts';
import {
  isJsonObject,
  type JsonObject,
  parseStrictJson,
  StrictJsonError,
} from '../../protocol/strict-json.ts';
import { isWellKnownMember } from '../decision/explain/well-known-names.ts';
import type { BodyState } from '../decision/facts/request-facts.ts';
import { readCheckRequest } from './check-request-json.ts';
import { ExplainInputError } from './explain-input-error.ts';
import { JsonFields, requestInvalid } from './json-fields.ts';
import { type RecordedEvent, readRecordedEvent } from './recorded-event.ts';
import { isSignOutput, readSignOutput } from './sign-output.ts';

export type ExplainInput = CapturedRequest | RecordedAlone | CapturedDenial;

export interface CapturedRequest {
  readonly kind: 'request';
  readonly check: CheckRequest;
  /** Undefined without an audit event. */
  readonly recorded: RecordedEvent | undefined;
  readonly moment: { readonly source: 'event' | 'check_request'; readonly seconds: number } | undefined;
  /** Set for the output of `sign`: the request and its body are the signed ones, but only the body's hash is known. */
  readonly signedBody: BodyState | undefined;
  /** Whether the enforcement point accepts HTTP message signatures and DPoP proofs, as Envoy over gRPC does. */
  readonly removesProofs: boolean;
}

/** An audit event without its request. */
interface RecordedAlone {
  readonly kind: 'event';
  readonly recorded: RecordedEvent;
}

/** A file of `--capture-denied`: the verifier explained the request itself. */
export interface CapturedDenial {
  readonly kind: 'denial';
  readonly explanation: JsonObject;
  readonly outcome: 'allowed' | 'denied';
  /** The explanation as text, one line each. */
  readonly lines: readonly string[];
  /** Undefined without `--capture-credentials`. */
  readonly request: CapturedRequest | undefined;
}

/** @throws ExplainInputError `request_not_json`, `request_invalid` */
export function parseExplainInput(text: string): ExplainInput {
  const value = parseJson(text);
  if (isSignOutput(value)) return requestOfSignOutput(value);
  if (isJsonObject(value) && typeof value.event === 'string') {
    return { kind: 'event', recorded: readRecordedEvent(new JsonFields(value, '')) };
  }
  if (isJsonObject(value) && Object.hasOwn(value, 'attributes')) {
    const { check, time } = readCheckRequest(value);
    const seconds = time === undefined ? undefined : parseMoment(time);
    if (time !== undefined && seconds === undefined) {
      throw requestInvalid('/attributes/request/time', 'must be a time in UTC');
    }
    const moment = seconds === undefined ? undefined : ({ source: 'check_request', seconds } as const);
    const others = { recorded: undefined, signedBody: undefined, removesProofs: true };
    return { kind: 'request', check, moment, ...others };
  }
  const capture = new JsonFields(value, '');
  if (capture.value('explanation') !== undefined) return readDenial(capture);
  capture.only(MEMBERS);
  return readCapture(capture);
}

const DENIAL_MEMBERS = ['explanation', 'text', 'header_lengths'];

function readDenial(capture: JsonFields): CapturedDenial {
  capture.only([...MEMBERS, ...DENIAL_MEMBERS]);
  const explanation = capture.object('explanation');
  const outcome = explanation?.object('decision')?.text('outcome');
  if (explanation === undefined || (outcome !== 'allowed' && outcome !== 'denied')) {
    throw requestInvalid(capture.at('explanation'), 'must be a whole explanation');
  }
  const lines = (capture.items('text') ?? []).map((line) => {
    if (typeof line !== 'string') throw requestInvalid(capture.at('text'), 'must be a list of texts');
    return line;
  });
  return {
    kind: 'denial',
    explanation: explanation.members,
    outcome,
    lines,
    request: capture.value('headers') === undefined ? undefined : readCapture(capture),
  };
}

/** The request that was signed, with the headers that `sign` printed and those that it signed. */
function requestOfSignOutput(value: JsonObject): CapturedRequest {
  const { body, credentials, transcript } = readSignOutput(value);
  const { authority: host, headers, method, scheme, target: path } = transcript;
  const http = { method, scheme, host, path };
  const header_map = { headers: asEnvoySends(http, [...credentials, ...headers], false) };
  return {
    kind: 'request',
    check: { attributes: { request: { http: { ...http, header_map } } } },
    recorded: undefined,
    moment: undefined,
    signedBody: body,
    removesProofs: true,
  };
}

function parseJson(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const { twice } = error;
    const member = twice !== undefined && isWellKnownMember(twice) ? `the member ${twice}` : 'a member';
    const problem = twice === undefined ? 'is not valid JSON' : `has ${member} twice in one object`;
    throw new ExplainInputError('request_not_json', `the request ${problem}`);
  }
}

const REQUEST_MEMBERS = ['method', 'scheme', 'authority', 'path', 'headers', 'body', 'body_base64'];
const MEMBERS = ['event', ...REQUEST_MEMBERS, 'body_unknown', 'accepts_http_signatures'];

function readCapture(capture: JsonFields): CapturedRequest {
  const event = capture.object('event');
  const recorded = event && readRecordedEvent(event);
  const lines = readHeaderLines(capture);
  const lineOf = (name: string) => lines.find((line) => line.name === name)?.value;
  const body = bodyOf(capture);
  const http = {
    method: orMissing(capture, 'method', capture.text('method') ?? lineOf(':method') ?? recorded?.method),
    scheme: orMissing(capture, 'scheme', capture.text('scheme') ?? lineOf(':scheme')),
    host: orMissing(
      capture,
      'authority',
      capture.text('authority') ?? lineOf(':authority') ?? lineOf('host'),
    ),
    path: orMissing(capture, 'path', capture.text('path') ?? lineOf(':path')),
  };
  const isBodyUnknown = capture.value('body_unknown') === true;
  const headers = asEnvoySends(http, lines, isBodyUnknown ? 'unknown' : body !== undefined);
  const bytes = body === undefined ? {} : { raw_body: body };
  return {
    kind: 'request',
    check: { attributes: { request: { http: { ...http, header_map: { headers }, ...bytes } } } },
    recorded,
    moment: recorded && { source: 'event', seconds: recorded.timeSeconds },
    signedBody: undefined,
    removesProofs: capture.value('accepts_http_signatures') !== false,
  };
}

function orMissing(capture: JsonFields, name: string, value: string | undefined): string {
  if (value === undefined) throw requestInvalid(capture.at(name), 'is missing');
  return value;
}

function bodyOf(capture: JsonFields): Buffer | undefined {
  const text = capture.text('body');
  const bytes = capture.bytes('body_base64');
  if (text !== undefined && bytes !== undefined) {
    throw requestInvalid(capture.at('body_base64'), 'is there beside body: give one of them');
  }
  return text === undefined ? bytes : Buffer.from(text, 'utf8');
}

interface HeaderLine {
  /** Lower case. */
  readonly name: string;
  readonly value: string;
}

/** `{"Name": "value"}`, `{"Name": ["value", "value"]}` or `["Name: value"]`. */
function readHeaderLines(capture: JsonFields): readonly HeaderLine[] {
  const headers = capture.value('headers');
  if (headers === undefined) return [];
  if (Array.isArray(headers)) {
    return headers.map((line: unknown, index) => readLine(line, `${capture.at('headers')}/${index}`));
  }
  const fields = new JsonFields(headers, capture.at('headers'));
  return fields.names.flatMap((name) => {
    const value = fields.value(name);
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    return values.map((item) => {
      if (typeof item !== 'string') throw requestInvalid(fields.at(name), 'must be text, or a list of texts');
      return { name: name.toLowerCase(), value: item };
    });
  });
}

function readLine(line: unknown, path: string): HeaderLine {
  const [, name, value] = (typeof line === 'string' && /^(:?[^:\s]+):[ \t]*(.*)$/s.exec(line)) || [];
  if (name === undefined || value === undefined)
    throw requestInvalid(path, 'must be a header line, Name: value');
  return { name: name.toLowerCase(), value };
}

/**
 * Converts to Envoy's form with `encode_raw_headers` and `with_request_body`: pseudo-headers and `host` are among the
 * headers, and a header states whether the body is complete.
 */
function asEnvoySends(
  { host, method, path, scheme }: { readonly [N in 'host' | 'method' | 'path' | 'scheme']: string },
  lines: readonly HeaderLine[],
  hasBody: boolean | 'unknown',
): readonly HeaderValue[] {
  const others = lines.filter(
    ({ name }) => !name.startsWith(':') && name !== 'host' && name !== PARTIAL_BODY,
  );
  const isIncomplete = hasBody === 'unknown' || (!hasBody && mayHaveHadBody(method, lines));
  const all = [
    { name: ':authority', value: host },
    { name: ':path', value: path },
    { name: ':method', value: method },
    { name: ':scheme', value: scheme },
    ...others,
    ...(hasBody || isIncomplete ? [{ name: PARTIAL_BODY, value: String(isIncomplete) }] : []),
  ];
  return all.map(({ name, value }) => ({ key: name, raw_value: Buffer.from(value, 'utf8') }));
}

const PARTIAL_BODY = 'x-envoy-auth-partial-body';

/** Distinguishes a body that was not captured from an empty one. */
function mayHaveHadBody(method: string, lines: readonly HeaderLine[]): boolean {
  if (lines.some(({ name }) => name === PARTIAL_BODY)) return true;
  const isSaidToBeEmpty = lines.some(({ name, value }) => name === 'content-length' && /^0+$/.test(value));
  return isBodyBearing(method) && !isSaidToBeEmpty;
}
