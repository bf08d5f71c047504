/** Tests which heads an HTTP enforcement point rejects before it verifies. */
import { describe, expect, it } from '@jest/globals';
import type { HeaderLine } from '../../../src/process/http-proxy/raw-headers.ts';
import { faultOf } from '../../../src/process/http-proxy/request-faults.ts';

const HOST: HeaderLine = ['Host', 'api.example'];

function faultOfLines(lines: readonly HeaderLine[], head: { httpVersion?: string; authority?: string } = {}) {
  return faultOf({ httpVersion: '1.1', method: 'POST', lines, ...head });
}

describe('HTTP/1.1', () => {
  it.each<[string, readonly HeaderLine[], string | undefined]>([
    ['a host', [HOST], undefined],
    ['no host', [], 'host_missing'],
    ['an empty host', [['host', '']], 'host_missing'],
    ['two hosts', [HOST, ['HOST', 'api.example']], 'host_repeated'],
    [
      'harmless options',
      [HOST, ['Connection', 'Keep-Alive, Upgrade'], ['connection', 'TE,,close']],
      undefined,
    ],
    ['the options of an offer of h2c', [HOST, ['Connection', 'Upgrade, HTTP2-Settings']], undefined],
    [
      'an option that names a signed header',
      [HOST, ['connection', 'close, x-request-id']],
      'connection_option',
    ],
    ['an option that names the proof', [HOST, ['Connection', 'X-Proofgate-Signature']], 'connection_option'],
    ['a length', [HOST, ['content-length', '12']], undefined],
    ['chunks', [HOST, ['transfer-encoding', 'Chunked']], undefined],
    ['two equal lengths', [HOST, ['content-length', '1'], ['Content-Length', '1']], 'framing'],
    ['a signed length', [HOST, ['content-length', '+1']], 'framing'],
    ['a list of lengths', [HOST, ['content-length', '1, 1']], 'framing'],
    ['a length and chunks', [HOST, ['content-length', '1'], ['transfer-encoding', 'chunked']], 'framing'],
    ['two codings', [HOST, ['transfer-encoding', 'gzip'], ['transfer-encoding', 'chunked']], 'framing'],
    ['another coding', [HOST, ['transfer-encoding', 'identity']], 'framing'],
  ])('%s', (_, lines, fault) => {
    expect(faultOfLines(lines)).toBe(fault);
  });
});

it('rejects a transfer coding in HTTP/1.0', () => {
  expect(faultOfLines([HOST, ['transfer-encoding', 'chunked']], { httpVersion: '1.0' })).toBe('framing');
});

it('rejects CONNECT', () => {
  expect(faultOf({ httpVersion: '1.1', method: 'CONNECT', lines: [HOST] })).toBe('method_connect');
});

it.each<[string, readonly HeaderLine[], string | undefined]>([
  ['no host', [], undefined],
  ['the same host', [HOST], undefined],
  ['another host', [['host', 'other.example']], 'host_differs'],
  ['a host in capitals', [['host', 'API.example']], 'host_differs'],
])('compares :authority with %s', (_, lines, fault) => {
  expect(faultOfLines(lines, { httpVersion: '2.0', authority: 'api.example' })).toBe(fault);
});

it.each([
  ['0.9', 'http_version'],
  ['1.0', undefined],
  ['2.0', undefined],
  ['3.0', 'http_version'],
])('HTTP/%s', (httpVersion, fault) => {
  expect(faultOfLines([HOST], { httpVersion })).toBe(fault);
});
