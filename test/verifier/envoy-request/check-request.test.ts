/** Tests the conversion of a CheckRequest into facts: a value that is not provably exact does not count as exact. */
import { describe, expect, it } from '@jest/globals';
import type { HeaderValue, HttpRequest } from '../../../src/process/ext-authz/request-messages.ts';
import { authorizationService, loadPackageDefinition } from '../../../src/process/ext-authz/service.ts';
import type { HeaderLookup } from '../../../src/protocol/credentials.ts';
import {
  type EnvoyBodyMode,
  factsOfCheckRequest,
} from '../../../src/verifier/envoy-request/check-request.ts';
import { mergedCheckRequest, rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../../support/fixtures/snapshot.ts';

const factsOf = (http: HttpRequest, bodyMode: EnvoyBodyMode = 'buffered') =>
  factsOfCheckRequest({ attributes: { request: { http } } }, bodyMode);
const line = (key: string, value: string): HeaderValue => ({ key, raw_value: Buffer.from(value, 'latin1') });
const single = (value: string): HeaderLookup => ({ kind: 'single', value });
const ABSENT: HeaderLookup = { kind: 'absent' };
const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };

it('keeps each header line as it came, in order, for captures and signatures', () => {
  const lines = [line('x-b', ' two'), { key: 'x-a', value: 'one' }, line('X-B', 'caf\u00e9'), {}];
  const { headers } = factsOf({ header_map: { headers: lines } });
  expect(headers.lines()).toEqual([
    ['x-b', ' two'],
    ['x-a', 'one'],
    ['X-B', 'caf\u00e9'],
    ['', ''],
  ]);
  expect(headers.names()).toEqual(['x-b', 'x-a', 'X-B', '']);
  expect(headers.values('x-b')).toEqual([' two', 'caf\u00e9']);
  const merged = factsOf({ headers: { 'x-b': 'one,two', 'x-a': '' } }).headers;
  expect([merged.lines(), merged.names()]).toEqual([
    [
      ['x-b', 'one,two'],
      ['x-a', ''],
    ],
    ['x-b', 'x-a'],
  ]);
});

describe('method, origin and target', () => {
  it('are taken as they are', () => {
    const http = {
      method: 'get',
      scheme: 'HTTPS',
      host: 'API.example:443',
      path: '//a/%2e?b#c',
      headers: {},
    };
    expect(factsOf(http)).toMatchObject({
      method: 'get',
      scheme: 'HTTPS',
      authority: 'API.example:443',
      target: '//a/%2e?b#c',
    });
  });

  const FORWARDED_PROTO = 'x-forwarded-proto';

  it.each<[string, HttpRequest, string]>([
    ['once', { header_map: { headers: [line(FORWARDED_PROTO, 'http')] } }, 'https'],
    ['once, merged', { headers: { [FORWARDED_PROTO]: 'http' } }, 'https'],
    ['joined', { header_map: { headers: [line(FORWARDED_PROTO, 'https,https')] } }, ''],
    ['joined, merged', { headers: { [FORWARDED_PROTO]: 'http, https' } }, ''],
    [
      'twice',
      { header_map: { headers: [line(FORWARDED_PROTO, 'https'), line('X-Forwarded-Proto', 'https')] } },
      '',
    ],
  ])('is the scheme only as sure as x-forwarded-proto: %s', (_how, http, scheme) => {
    expect(factsOf({ scheme: 'https', ...http }).scheme).toBe(scheme);
  });

  it.each([
    [{ path: '/a', query: 'b=1' }, ''],
    [{ path: '/a', fragment: 'b' }, ''],
    [{ path: '/a?b=1', query: '', fragment: '' }, '/a?b=1'],
    [{ path: '/a', header_map: { headers: [line('content-length', '05')] } }, '/a'],
    [{ path: '/a', header_map: { headers: [line('content-length', '+5')] } }, ''],
    [{ path: '/a', header_map: { headers: [line('content-length', '')] } }, ''],
    [{ path: '/a', header_map: { headers: [line('content-length', '5,5')] } }, ''],
    [{ path: '/a', header_map: { headers: [line('content-length', '5'), line('content-length', '5')] } }, ''],
    [{ path: '/a', headers: { 'content-length': '+5' } }, ''],
    [{ query: 'b=1' }, ''],
    [{}, ''],
  ])('%j leads to %j', (http, target) => {
    expect(factsOf(http).target).toBe(target);
  });

  it.each([
    {},
    { attributes: {} },
    { attributes: { request: {} } },
    { attributes: { request: { http: {} } } },
  ])('%j is a request for nothing', (request) => {
    const facts = factsOfCheckRequest(request, 'buffered');
    expect(facts).toMatchObject({ method: '', scheme: '', authority: '', target: '' });
    expect(facts.headers.names()).toEqual([]);
    expect(facts.headers.lookup('authorization')).toEqual(ABSENT);
  });
});

describe('a `!`, which may stand for a byte that is not UTF-8', () => {
  const target = (http: HttpRequest) => factsOf({ path: '/a!b', ...http }).target;

  it('is kept in the target where the raw path has it too', () => {
    const pathLine = (value: string) => ({ header_map: { headers: [line(':path', value)] } });
    expect(target(pathLine('/a!b'))).toBe('/a!b');
    expect(target(pathLine('/a\xffb'))).toBe('');
    expect(target({ header_map: { headers: [] } })).toBe('');
    expect(target({ header_map: { headers: [line(':path', '/a!b'), line(':path', '/a!b')] } })).toBe('');
  });

  it('is not kept where there is no raw path', () => {
    expect(target({ headers: { ':path': '/a!b' } })).toBe('');
    expect(target({})).toBe('');
    expect(factsOf({ path: '/ab', headers: {} }).target).toBe('/ab');
  });

  it('makes a text body unknown, and a packed one not', () => {
    const headers = { 'x-envoy-auth-partial-body': 'false' };
    const bytes = Buffer.from('a!b');
    expect(factsOf({ headers, body: bytes }).body).toEqual({ kind: 'unknown' });
    expect(factsOf({ headers, raw_body: bytes }).body).toEqual({ kind: 'exact', bytes });
  });
});

describe('raw header lines', () => {
  const lookup = (lines: readonly HeaderValue[], name: string) =>
    factsOf({ header_map: { headers: lines }, headers: { 'x-a': 'merged' } }).headers.lookup(name);

  it.each<[string, readonly HeaderValue[], HeaderLookup]>([
    ['absent, whatever the merged map says', [line('x-b', '1')], ABSENT],
    ['one', [line('x-a', 'v')], single('v')],
    ['one, in capitals', [line('X-A', 'v')], single('v')],
    ['two', [line('x-a', 'v'), line('x-a', 'v')], AMBIGUOUS],
    ['two, one in capitals', [line('x-a', 'v'), line('X-a', 'v')], AMBIGUOUS],
    ['one and an empty one', [line('x-a', 'v'), line('x-a', '')], AMBIGUOUS],
    ['white space at the ends', [line('x-a', ' \t v w\t ')], single('v w')],
    ['other white space', [line('x-a', '\x0bv\n')], single('\x0bv\n')],
    ['a comma in a name of which lines stay apart', [line('x-a', 'v,w')], single('v,w')],
    ['bytes, one character each', [line('x-a', '\xff\xc3\xa9!')], single('\xff\xc3\xa9!')],
    ['a text value', [{ key: 'x-a', value: 'v' }], single('v')],
    ['bytes before text', [{ key: 'x-a', value: 'v', raw_value: Buffer.alloc(0) }], single('')],
    ['no value', [{ key: 'x-a' }], single('')],
    ['a line without a name', [{ raw_value: Buffer.from('v') }], ABSENT],
  ])('%s', (_, lines, expected) => {
    expect(lookup(lines, 'x-a')).toEqual(expected);
  });

  it.each([
    'authorization',
    'cookie',
    'accept',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-request-id',
    'x-envoy-anything',
  ])('a comma in %s may stand for two lines', (name) => {
    expect(lookup([line(name, 'a,b')], name)).toEqual(AMBIGUOUS);
    expect(lookup([line(name, 'a b')], name)).toEqual(single('a b'));
  });

  it('win over the merged map even when there are none', () => {
    expect(factsOf({ header_map: {}, headers: { 'x-a': 'v' } }).headers.lookup('x-a')).toEqual(ABSENT);
  });

  it('are listed as they stand, repeated ones too', () => {
    const lines = [line('X-A', '1'), line('x-a', '2'), line(':path', '/')];
    expect(factsOf({ header_map: { headers: lines } }).headers.names()).toEqual(['X-A', 'x-a', ':path']);
  });
});

describe('merged headers', () => {
  const lookup = (headers: { [name: string]: string }, name = 'x-a') =>
    factsOf({ headers }).headers.lookup(name);

  it.each<[string, HeaderLookup]>([
    ['v', single('v')],
    [' v\t', single('v')],
    ['', single('')],
    ['v,w', AMBIGUOUS],
    ['v!w', AMBIGUOUS],
    [',', AMBIGUOUS],
  ])('%j', (value, expected) => {
    expect(lookup({ 'x-a': value })).toEqual(expected);
  });

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('no header is named %s', (name) => {
    expect(lookup({ 'x-a': 'v' }, name)).toEqual(ABSENT);
  });

  it('are listed', () => {
    expect(factsOf({ headers: { 'x-a': '1', ':path': '/' } }).headers.names()).toEqual(['x-a', ':path']);
  });
});

const BYTES = Buffer.from([0, 0xff, 0x61]);
const NONE = { kind: 'none' };
const UNKNOWN = { kind: 'unknown' };
const exactly = (bytes: Buffer) => ({ kind: 'exact', bytes });

interface BodyCase {
  readonly name: string;
  readonly headers: { readonly [name: string]: string };
  readonly http?: HttpRequest;
  readonly buffered: object;
  /** Default: as with buffered bodies. */
  readonly none?: object;
}

const PARTIAL = 'x-envoy-auth-partial-body';
const BODY_CASES: readonly BodyCase[] = [
  {
    name: 'packed bytes, complete',
    headers: { [PARTIAL]: 'false' },
    http: { raw_body: BYTES },
    buffered: exactly(BYTES),
  },
  {
    name: 'text bytes, complete',
    headers: { [PARTIAL]: 'false' },
    http: { body: BYTES },
    buffered: exactly(BYTES),
  },
  { name: 'no bytes, complete', headers: { [PARTIAL]: 'false' }, buffered: exactly(Buffer.alloc(0)) },
  {
    name: 'empty packed bytes beside text',
    headers: { [PARTIAL]: 'false' },
    http: { raw_body: Buffer.alloc(0), body: BYTES },
    buffered: exactly(BYTES),
  },
  {
    name: 'both kinds of bytes',
    headers: { [PARTIAL]: 'false' },
    http: { raw_body: BYTES, body: Buffer.from('x') },
    buffered: UNKNOWN,
  },
  { name: 'cut off', headers: { [PARTIAL]: 'true' }, http: { raw_body: BYTES }, buffered: UNKNOWN },
  ...['', 'False', 'FALSE', '0', 'no', 'false;', 'true,false', 'false,false'].map((value) => ({
    name: `partial-body ${JSON.stringify(value)}`,
    headers: { [PARTIAL]: value },
    http: { raw_body: BYTES },
    buffered: UNKNOWN,
  })),
  { name: 'nothing at all', headers: {}, buffered: NONE, none: UNKNOWN },
  { name: 'bytes without the header', headers: {}, http: { raw_body: BYTES }, buffered: UNKNOWN },
  { name: 'text without the header', headers: {}, http: { body: BYTES }, buffered: UNKNOWN },
  { name: 'empty bytes', headers: {}, http: { raw_body: Buffer.alloc(0) }, buffered: NONE, none: UNKNOWN },
  { name: 'length 0', headers: { 'content-length': '0' }, buffered: NONE, none: UNKNOWN },
  { name: 'length 000', headers: { 'content-length': '000' }, buffered: NONE, none: UNKNOWN },
  ...['5', '', '-0', '0x0', '+0', '0,0', '0 0', '0;'].map((value) => ({
    name: `length ${JSON.stringify(value)}`,
    headers: { 'content-length': value },
    buffered: UNKNOWN,
  })),
  ...['chunked', 'identity', '', 'gzip, chunked'].map((value) => ({
    name: `transfer-encoding ${JSON.stringify(value)}`,
    headers: { 'transfer-encoding': value },
    buffered: UNKNOWN,
  })),
  { name: 'both', headers: { 'transfer-encoding': 'chunked', 'content-length': '0' }, buffered: UNKNOWN },
];

describe('the body', () => {
  describe.each(['raw', 'merged'])('with %s headers', (form) => {
    it.each(BODY_CASES)('$name', ({ buffered, headers, http, none }) => {
      const header_map = { headers: Object.entries(headers).map(([name, value]) => line(name, value)) };
      const request = { ...http, ...(form === 'raw' ? { header_map } : { headers }) };
      expect(factsOf(request, 'buffered').body).toEqual(buffered);
      expect(factsOf(request, 'none').body).toEqual(none ?? buffered);
    });
  });

  it('is unknown when the partial-body header came twice', () => {
    const headers = [line(PARTIAL, 'false'), line(PARTIAL, 'false')];
    expect(factsOf({ header_map: { headers }, raw_body: BYTES }).body).toEqual(UNKNOWN);
  });

  it('is unknown when the length came twice', () => {
    const headers = [line('content-length', '0'), line('content-length', '0')];
    expect(factsOf({ header_map: { headers } }).body).toEqual(UNKNOWN);
  });
});

describe('over the wire', () => {
  const { Check } = authorizationService(loadPackageDefinition());
  const again = (request: object) => Check?.requestDeserialize(Check.requestSerialize(request) as Buffer);

  it('text bodies keep their bytes, UTF-8 or not', () => {
    const body = Buffer.from([0xc3, 0x28, 0xff, 0x00, 0xed, 0xa0, 0x80]);
    const headers = { [PARTIAL]: 'false' };
    const request = again({ attributes: { request: { http: { body, headers } } } });
    expect(factsOfCheckRequest(request as object, 'buffered').body).toEqual(exactly(body));
  });

  it.each<RequestPlan>([
    { caller: 'billing', route: 'everything' },
    { caller: 'billing', route: 'orders-read' },
  ])('%j comes out as it went in', (plan) => {
    const { facts, wire } = signRequest(newSiteKeys(), plan);
    for (const request of [rawCheckRequest(wire), mergedCheckRequest(wire)]) {
      const found = factsOfCheckRequest(again(request) as object, 'buffered');
      const { headers, ...rest } = found;
      const { headers: _, ...expected } = facts;
      expect(rest).toEqual({ ...expected, removesProofs: true });
      for (const { name, value } of wire.headers) expect(headers.lookup(name)).toEqual(single(value));
    }
  });
});
