import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type SourceValidation, validateSource } from '../../../src/control/issuers/validate-source.ts';
import type { FetchFailureCode } from '../../../src/process/outbound-fetch/fetch-failures.ts';
import { MAX_RESPONSE_BYTES } from '../../../src/process/outbound-fetch/outbound-fetch.ts';
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6 } from '../../support/control/hostile-urls.ts';
import {
  AUDIENCE,
  ConnectionRecord,
  GOOD_ADDRESS,
  IssuerEnvironment,
} from '../../support/control/issuers-fixture.ts';
import type { IssuerFault } from '../../support/fakes/issuer-faults.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';

let env: IssuerEnvironment;
let issuer: ServiceAccountIssuer;
let record: ConnectionRecord;

beforeAll(async () => {
  env = await IssuerEnvironment.start();
  issuer = await env.issuer({ path: '/id/4F2A' });
  record = new ConnectionRecord();
});

afterAll(async () => {
  record.close();
  await env.close();
});

afterEach(() => {
  issuer.setFault('discovery', undefined);
  issuer.setFault('keys', undefined);
  record.attempts.length = 0;
});

const filler = (length: number) => `{"keys":[],"filler":"${'a'.repeat(length - 24)}"}`.padEnd(length, ' ');

interface FaultCase {
  readonly what: string;
  readonly fault: IssuerFault;
  readonly code: FetchFailureCode;
  readonly timeoutMs?: number;
}

const forbiddenUrls = [
  ...FORBIDDEN_IPV4.slice(0, 20).map((host) => `https://${host}/`),
  ...FORBIDDEN_IPV6.slice(0, 20).map((host) => `https://[${host}]/`),
  'http://127.0.0.1/',
  'file:///etc/passwd',
  '//127.0.0.1/',
  '/elsewhere',
];

const FAULTS: readonly FaultCase[] = [
  ...forbiddenUrls.map(
    (location): FaultCase => ({
      what: `a redirect to ${location}`,
      fault: { kind: 'redirect', status: 302, location },
      code: 'redirect_refused',
    }),
  ),
  ...[300, 301, 303, 304, 305, 307, 308, 399].map(
    (status): FaultCase => ({
      what: `a redirect with ${status}`,
      fault: { kind: 'redirect', status, location: 'https://127.0.0.1/' },
      code: 'redirect_refused',
    }),
  ),
  ...[201, 204, 206, 400, 401, 403, 404, 429, 500, 503].map(
    (status): FaultCase => ({
      what: `status ${status}`,
      fault: { kind: 'status', status },
      code: 'http_status',
    }),
  ),
  ...[
    undefined,
    '',
    'text/html',
    'text/plain',
    'application/octet-stream',
    'application/jsonp',
    'application/json, text/html',
    'json',
    'image/png',
  ].map(
    (contentType): FaultCase => ({
      what: `the type ${contentType}`,
      fault: { kind: 'content_type', contentType },
      code: 'content_type',
    }),
  ),
  ...['gzip', 'br', 'deflate', 'identity, gzip', 'x-unknown'].map(
    (value): FaultCase => ({
      what: `the encoding ${value}`,
      fault: { kind: 'header', name: 'content-encoding', value },
      code: 'content_encoding',
    }),
  ),
  {
    what: 'a body of one byte too much',
    fault: { kind: 'body', body: filler(MAX_RESPONSE_BYTES + 1) },
    code: 'response_too_large',
  },
  { what: 'a huge body', fault: { kind: 'huge', bytes: 8_000_000 }, code: 'response_too_large' },
  {
    what: 'a huge body in chunks',
    fault: { kind: 'huge', bytes: 8_000_000, chunked: true },
    code: 'response_too_large',
  },
  { what: 'huge headers', fault: { kind: 'huge_header', bytes: 20_000 }, code: 'response_too_large' },
  {
    what: 'no answer in time',
    fault: { kind: 'delay', delayMs: 60_000 },
    code: 'response_too_slow',
    timeoutMs: 300,
  },
  { what: 'a head and no body', fault: { kind: 'stall' }, code: 'response_too_slow', timeoutMs: 300 },
  {
    what: 'a body byte by byte',
    fault: { kind: 'drip', intervalMs: 20 },
    code: 'response_too_slow',
    timeoutMs: 300,
  },
  { what: 'a cut body', fault: { kind: 'cut' }, code: 'connection_failed' },
  { what: 'no HTTP', fault: { kind: 'raw', bytes: 'SSH-2.0-OpenSSH_9.6\r\n' }, code: 'connection_failed' },
  { what: 'nothing at all', fault: { kind: 'raw', bytes: '' }, code: 'connection_failed' },
  { what: 'an empty body', fault: { kind: 'body', body: '' }, code: 'body_malformed' },
  { what: 'a page', fault: { kind: 'body', body: '<html></html>' }, code: 'body_malformed' },
  { what: 'text behind the JSON', fault: { kind: 'body', body: '{}{}' }, code: 'body_malformed' },
  { what: 'a member twice', fault: { kind: 'body', body: '{"keys":[],"keys":[]}' }, code: 'body_malformed' },
  { what: 'a byte order mark', fault: { kind: 'body', body: '\ufeff{}' }, code: 'body_malformed' },
  {
    what: 'bytes that are not UTF-8',
    fault: { kind: 'body', body: Buffer.from('{"a":"\xff"}', 'latin1') },
    code: 'body_malformed',
  },
  {
    what: 'a compressed body that says nothing of it',
    fault: { kind: 'body', body: gzipSync('{}') },
    code: 'body_malformed',
  },
  {
    what: '100,000 open brackets',
    fault: { kind: 'body', body: '['.repeat(100_000) },
    code: 'body_malformed',
  },
];

describe.each(['discovery', 'keys'] as const)(
  'a draft fails, and no other host is connected to, when %s is answered with',
  (document) => {
    it.each(FAULTS)('$what', async ({ fault, code, timeoutMs }) => {
      issuer.setFault(document, fault);
      const fetcher = env.fetcher(timeoutMs === undefined ? {} : { timeoutMs });
      const source = { issuer: issuer.issuer, jwksUri: issuer.jwksUri, audience: AUDIENCE };
      const result: SourceValidation = await record.watch(() => validateSource(source, fetcher, Date.now));
      expect(result).toEqual({ kind: 'invalid', code, detail: expect.any(String) });
      expect(new Set(record.attempts)).toEqual(new Set([GOOD_ADDRESS]));
    });
  },
);

it('a body of exactly the greatest size is taken', async () => {
  issuer.setFault('keys', { kind: 'body', body: filler(MAX_RESPONSE_BYTES) });
  expect((await env.fetcher().fetchJson(issuer.jwksUri)).kind).toBe('fetched');
});

it('what a server says is not repeated in the failure', async () => {
  issuer.setFault('keys', {
    kind: 'redirect',
    status: 302,
    location: 'https://internal-name.example/canary',
  });
  expect(JSON.stringify(await env.fetcher().fetchJson(issuer.jwksUri))).not.toContain('canary');
  issuer.setFault('keys', { kind: 'body', body: 'canary' });
  expect(JSON.stringify(await env.fetcher().fetchJson(issuer.jwksUri))).not.toContain('canary');
});
