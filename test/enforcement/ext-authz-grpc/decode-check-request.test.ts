/** Compares the decoder with the library's: it returns the same values, and none where the bytes are ambiguous. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decodeCheckRequest, HEADER_LIMITS } from '../../../src/process/ext-authz/decode-check-request.ts';
import type { CheckRequest, HeaderValue } from '../../../src/process/ext-authz/request-messages.ts';
import { loadPackageDefinition, requestSerializer } from '../../../src/process/ext-authz/service.ts';

const serialize = requestSerializer(loadPackageDefinition());

const text = fc.string({ unit: 'binary', maxLength: 40 });
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const headerLine = fc
  .record({ key: text, value: text, raw_value: bytes }, { requiredKeys: ['key'] })
  .map(({ key, raw_value, value }) => ({
    key,
    ...(value ? { value } : {}),
    ...(raw_value?.length ? { raw_value } : {}),
  }));
const httpRequest = fc.record(
  {
    method: text,
    headers: fc.dictionary(text, text, { maxKeys: 5, noNullPrototype: true }),
    path: text,
    host: text,
    scheme: text,
    query: text,
    fragment: text,
    body: bytes,
    raw_body: bytes,
    header_map: fc.record({ headers: fc.array(headerLine, { maxLength: 6 }) }),
  },
  { requiredKeys: [] },
);

/** The bytes of header values become text. */
const asDecoded = ({ raw_value, ...line }: HeaderValue): HeaderValue =>
  raw_value === undefined ? line : { ...line, raw_text: raw_value.toString('latin1') };

function decodedOf(http: {
  readonly header_map?: { readonly headers: readonly HeaderValue[] };
}): CheckRequest {
  const header_map = http.header_map && { headers: http.header_map.headers.map(asDecoded) };
  return { attributes: { request: { http: { ...http, ...(header_map && { header_map }) } } } };
}

/** Empty scalars need not be on the wire; an empty map cannot be. */
function withoutEmpty(request: CheckRequest): object {
  const http = request.attributes?.request?.http ?? {};
  const kept = Object.entries(http).filter(([, value]) =>
    typeof value === 'string' || Buffer.isBuffer(value) ? value.length > 0 : Object.keys(value).length > 0,
  );
  return Object.fromEntries(kept);
}

const encode = (request: object): Buffer => serialize(request as CheckRequest);
const messageOf = (http: object): Buffer => encode({ attributes: { request: { http } } });

/** Protocol Buffers encoding: a length-delimited field. */
function field(number: number, content: Uint8Array): Buffer {
  if (content.byteLength > 127) throw new Error('longer than one byte can tell');
  return Buffer.concat([Buffer.of((number << 3) | 2, content.byteLength), content]);
}

const REQUEST = { method: 'GET', path: '/v1/orders/7', host: 'api.shop.example', scheme: 'https' };

describe('a CheckRequest', () => {
  it('is read as the library reads it', () => {
    fc.assert(
      fc.property(httpRequest, (http) => {
        expect(withoutEmpty(decodeCheckRequest(messageOf(http)))).toEqual(withoutEmpty(decodedOf(http)));
      }),
      { numRuns: 2000 },
    );
  });

  it('may hold any other field', () => {
    // A string, a varint, 8 bytes and 4 bytes.
    const others = Buffer.concat([
      field(7, Buffer.from('other')),
      Buffer.of((9 << 3) | 0, 0xff, 0x01),
      Buffer.of((14 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8),
      Buffer.of((15 << 3) | 5, 1, 2, 3, 4),
    ]);
    const http = field(2, Buffer.from('GET'));
    const message = field(1, Buffer.concat([others, field(4, Buffer.concat([others, field(2, http)]))]));
    expect(decodeCheckRequest(message)).toEqual({ attributes: { request: { http: { method: 'GET' } } } });
  });

  it('may have a header called __proto__', () => {
    const message = messageOf({ headers: Object.fromEntries([['__proto__', 'x']]) });
    const headers = decodeCheckRequest(message).attributes?.request?.http?.headers ?? {};
    expect(Object.entries(headers)).toEqual([['__proto__', 'x']]);
  });

  it('is empty without bytes', () => {
    expect(decodeCheckRequest(Buffer.alloc(0))).toEqual({});
  });
});

describe('bytes that leave a doubt are refused', () => {
  const http = field(2, Buffer.from('GET'));
  const request = field(2, http);
  const attributes = field(4, request);
  const lines = field(1, Buffer.concat([field(1, Buffer.from('k')), field(3, Buffer.from('v'))]));

  it.each([
    ['attributes', Buffer.concat([field(1, attributes), field(1, attributes)])],
    ['request', field(1, Buffer.concat([attributes, attributes]))],
    ['http', field(1, field(4, Buffer.concat([request, request])))],
    ['header_map', field(1, field(4, field(2, Buffer.concat([field(13, lines), field(13, lines)]))))],
  ])('%s twice', (_, message) => {
    expect(() => decodeCheckRequest(message)).toThrow(RangeError);
  });

  it('a field that crosses the end of its message', () => {
    // The string says 5 bytes, its message ends after 3.
    const crossing = Buffer.concat([Buffer.of((2 << 3) | 2, 5), Buffer.from('GET')]);
    const message = Buffer.concat([field(1, field(4, field(2, crossing))), Buffer.from('XX')]);
    expect(() => decodeCheckRequest(message)).toThrow(RangeError);
  });

  it('every truncation', () => {
    const whole = messageOf({
      ...REQUEST,
      header_map: { headers: [{ key: 'k', raw_value: Buffer.from('v') }] },
    });
    for (let length = 1; length < whole.byteLength; length++) {
      expect(() => decodeCheckRequest(whole.subarray(0, length))).toThrow();
    }
  });

  const { maxBytes, maxLines } = HEADER_LIMITS;
  const raw = (count: number, value = '') => ({
    header_map: { headers: Array.from({ length: count }, () => ({ key: 'k', value })) },
  });
  const merged = (count: number, value = '') => ({
    headers: Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, value])),
  });

  it.each([
    ['raw', raw],
    ['merged', merged],
  ])('more header lines than anybody sends, %s', (_form, headersOf) => {
    expect(decodeCheckRequest(messageOf(headersOf(maxLines)))).toBeDefined();
    expect(() => decodeCheckRequest(messageOf(headersOf(maxLines + 1)))).toThrow(RangeError);
  });

  it.each([
    ['raw', raw],
    ['merged', merged],
  ])('longer headers than anybody sends, %s', (_form, headersOf) => {
    // Names, tags and lengths take a few bytes of each line.
    const value = 'v'.repeat(maxBytes / 8 - 20);
    expect(decodeCheckRequest(messageOf(headersOf(8, value)))).toBeDefined();
    expect(() => decodeCheckRequest(messageOf(headersOf(9, value)))).toThrow(RangeError);
  });
});

it('has the body as a view of the message', () => {
  for (const name of ['raw_body', 'body'] as const) {
    const message = messageOf({ ...REQUEST, [name]: Buffer.from('the body') });
    const found = decodeCheckRequest(message).attributes?.request?.http?.[name];
    expect(found?.toString()).toBe('the body');
    expect(found?.buffer).toBe(message.buffer);
  }
});
