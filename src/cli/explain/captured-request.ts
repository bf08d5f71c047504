/**
 * Reads a captured request: a CheckRequest, or an audit event with method, path and headers. Both are converted to the
 * CheckRequest that Envoy sends, so that the ext_authz code reads it like any other.
 * Source: docs/explain.md "The request".
 */
import type { CheckRequest, HeaderValue } from '../../enforcement/ext-authz-grpc/messages.ts';
import { usageError } from '../../program/errors.ts';
import { isBodyBearing } from '../../protocol/body-binding.ts';
import { parseMoment } from '../../protocol/rfc3339.ts';
import { isJsonObject, parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import { DECISION_EVENT_NAME } from '../../telemetry/decision-event.ts';
import { readCheckRequest } from './check-request-json.ts';
import { JsonFields, requestInvalid } from './json-fields.ts';
import { isWellKnownMember } from './well-known-names.ts';

export interface CapturedRequest {
  readonly check: CheckRequest;
  /** Undefined without an audit event. */
  readonly recorded: RecordedDecision | undefined;
  readonly moment: { readonly source: 'event' | 'check_request'; readonly seconds: number } | undefined;
}

/** @throws CliError `request_not_json`, `request_invalid` */
export function parseCapturedRequest(text: string): CapturedRequest {
  const value = parseJson(text);
  if (isJsonObject(value) && Object.hasOwn(value, 'attributes')) {
    const { check, time } = readCheckRequest(value);
    const seconds = time === undefined ? undefined : parseMoment(time);
    if (time !== undefined && seconds === undefined) {
      throw requestInvalid('/attributes/request/time', 'must be a time in UTC');
    }
    const moment = seconds === undefined ? undefined : ({ source: 'check_request', seconds } as const);
    return { check, recorded: undefined, moment };
  }
  return readCapture(new JsonFields(value, ''));
}

function parseJson(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const { twice } = error;
    const member = twice !== undefined && isWellKnownMember(twice) ? `the member ${twice}` : 'a member';
    const problem = twice === undefined ? 'is not valid JSON' : `has ${member} twice in one object`;
    throw usageError('request_not_json', `the request ${problem}`);
  }
}

const MEMBERS = ['event', 'method', 'scheme', 'authority', 'path', 'headers', 'body', 'body_base64'];

function readCapture(capture: JsonFields): CapturedRequest {
  capture.only(MEMBERS);
  const event = capture.object('event');
  const recorded = event && readRecordedDecision(event);
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
  const headers = asEnvoySends(http, lines, body !== undefined);
  const bytes = body === undefined ? {} : { raw_body: body };
  return {
    check: { attributes: { request: { http: { ...http, header_map: { headers }, ...bytes } } } },
    recorded,
    moment: recorded && { source: 'event', seconds: recorded.timeSeconds },
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
 * As Envoy sends it with `encode_raw_headers` and `with_request_body`: pseudo-headers and `host` are among the headers, and
 * a header states whether the body is complete.
 */
function asEnvoySends(
  { host, method, path, scheme }: { readonly [N in 'host' | 'method' | 'path' | 'scheme']: string },
  lines: readonly HeaderLine[],
  hasBody: boolean,
): readonly HeaderValue[] {
  const others = lines.filter(
    ({ name }) => !name.startsWith(':') && name !== 'host' && name !== PARTIAL_BODY,
  );
  const isIncomplete = !hasBody && mayHaveHadBody(method, lines);
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

/** Reads the audit event of a captured request, which has the original decision. Schema: docs/schema/decision-event.schema.json. */

export interface RecordedDecision {
  readonly timeSeconds: number;
  readonly decisionId: string | undefined;
  readonly outcome: 'allowed' | 'denied';
  readonly reason: string | undefined;
  readonly detail: string | undefined;
  readonly method: string | undefined;
  readonly bundleRevision: number | undefined;
  readonly bundleHead: string | undefined;
  readonly transcriptSha256: string | undefined;
}

/** Ignores unknown members, because events can gain some. @throws CliError `request_invalid` */
function readRecordedDecision(event: JsonFields): RecordedDecision {
  if (event.value('event') !== DECISION_EVENT_NAME) {
    throw requestInvalid(event.at('event'), `must be ${DECISION_EVENT_NAME}`);
  }
  const timeSeconds = parseMoment(event.text('time') ?? '');
  if (timeSeconds === undefined) throw requestInvalid(event.at('time'), 'must be a time in UTC');
  const outcome = event.text('outcome');
  if (outcome !== 'allowed' && outcome !== 'denied') {
    throw requestInvalid(event.at('outcome'), 'must be allowed or denied');
  }
  return {
    timeSeconds,
    outcome,
    decisionId: event.text('decision_id'),
    reason: event.text('reason'),
    detail: event.text('detail'),
    method: event.text('method'),
    bundleRevision: event.integer('bundle_revision'),
    bundleHead: event.text('bundle_head'),
    transcriptSha256: event.text('transcript_sha256'),
  };
}
