/**
 * Reads a CheckRequest in protobuf JSON, as grpcurl and gateways print it: original or camel case names, bytes as base64.
 * Source: https://protobuf.dev/programming-guides/json/, docs/reference/envoy-facts.md.
 */
import type { CheckRequest, HeaderValue, HttpRequest } from '../../process/ext-authz/request-messages.ts';
import { JsonFields, notAMember, requestInvalid } from './json-fields.ts';

export interface ReadCheckRequest {
  readonly check: CheckRequest;
  /** When the gateway received the request, as captured. */
  readonly time: string | undefined;
}

/** Members that Envoy sends; most do not affect the decision. */
const MEMBERS = {
  request: ['attributes'],
  attributes: [
    'source',
    'destination',
    'request',
    'context_extensions',
    'metadata_context',
    'route_metadata_context',
    'tls_session',
  ],
  attributesRequest: ['time', 'http'],
  http: [
    'id',
    'method',
    'headers',
    'header_map',
    'path',
    'host',
    'scheme',
    'query',
    'fragment',
    'size',
    'protocol',
    'body',
    'raw_body',
  ],
  headerMap: ['headers'],
  headerValue: ['key', 'value', 'raw_value'],
} as const;

/** @throws ExplainInputError `request_invalid` */
export function readCheckRequest(value: unknown): ReadCheckRequest {
  const attributes = message(value, '', MEMBERS.request).value('attributes');
  const attributesFields = message(attributes, '/attributes', MEMBERS.attributes);
  const request = message(
    attributesFields.value('request'),
    '/attributes/request',
    MEMBERS.attributesRequest,
  );
  const http = message(request.value('http'), '/attributes/request/http', MEMBERS.http);
  return { check: { attributes: { request: { http: readHttp(http) } } }, time: request.text('time') };
}

/** Members by their original names, for both spellings. */
function message(value: unknown, path: string, members: readonly string[]): JsonFields {
  const fields = new JsonFields(value, path);
  const renamed: { [name: string]: unknown } = {};
  const spelledAs = new Map<string, string>();
  for (const spelled of fields.names) {
    const name = members.find((member) => member === spelled || camelCase(member) === spelled);
    if (name === undefined) throw notAMember(fields.at(spelled), members);
    if (Object.hasOwn(renamed, name)) throw requestInvalid(fields.at(spelled), 'is there in both spellings');
    renamed[name] = fields.value(spelled);
    spelledAs.set(name, spelled);
  }
  return new JsonFields(renamed, path, spelledAs);
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function readHttp(http: JsonFields): HttpRequest {
  const text = http.text('body');
  const headerMap = http.value('header_map');
  return present({
    method: http.text('method'),
    path: http.text('path'),
    host: http.text('host'),
    scheme: http.text('scheme'),
    query: http.text('query'),
    fragment: http.text('fragment'),
    headers: readHeaders(http.object('headers')),
    header_map:
      headerMap === undefined ? undefined : { headers: readHeaderMap(headerMap, http.at('header_map')) },
    body: text === undefined ? undefined : Buffer.from(text, 'utf8'),
    raw_body: http.bytes('raw_body'),
  });
}

type Maybe<T> = { readonly [N in keyof T]: T[N] | undefined };

/** Absent members stay absent, as in a decoded message. */
function present<T extends object>(members: Maybe<Required<T>>): Partial<T> {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Partial<T>;
}

function readHeaders(headers: JsonFields | undefined): { readonly [name: string]: string } | undefined {
  if (headers === undefined) return undefined;
  return Object.fromEntries(headers.names.map((name) => [name, headers.text(name) ?? '']));
}

function readHeaderMap(value: unknown, path: string): readonly HeaderValue[] {
  const map = message(value, path, MEMBERS.headerMap);
  return (map.items('headers') ?? []).map((item, index) => {
    const header = message(item, `${path}/headers/${index}`, MEMBERS.headerValue);
    return present<Omit<HeaderValue, 'raw_text'>>({
      key: header.text('key'),
      value: header.text('value'),
      raw_value: header.bytes('raw_value'),
    });
  });
}
