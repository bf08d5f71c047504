import { describe, expect, it } from '@jest/globals';
import { parseRequestUrl } from '../../src/caller/request-url.ts';
import { codeOf } from '../support/caller/signing.ts';

describe('parseRequestUrl', () => {
  it.each([
    ['https://api.example/a?b=c', 'https://api.example', 'api.example', 443, '/a?b=c'],
    ['HTTPS://API.Example:443/A', 'https://api.example', 'api.example', 443, '/A'],
    ['http://api.example:80/', 'http://api.example', 'api.example', 80, '/'],
    ['http://api.example:443/', 'http://api.example:443', 'api.example', 443, '/'],
    ['http://[::1]:8080/a', 'http://[::1]:8080', '::1', 8080, '/a'],
    ['https://api.example', 'https://api.example', 'api.example', 443, '/'],
    ['https://api.example?q', 'https://api.example', 'api.example', 443, '/?q'],
    [
      'https://api.example/%C3%A9?%2e%2e/{x}',
      'https://api.example',
      'api.example',
      443,
      '/%C3%A9?%2e%2e/{x}',
    ],
  ])('%s', (url, origin, host, port, target) => {
    expect(parseRequestUrl(url)).toMatchObject({ origin, host, port, target });
  });

  it.each([
    '',
    '/a',
    'api.example/a',
    'ws://api.example/',
    'https:/api.example/',
    'https://',
    'https:///a',
    'https://user:secret@api.example/',
    'https://api.example./',
    'https://api.example:/',
    'https://api.example:0/',
    'https://api.example:65536/',
    'https://api.example:99999/',
    'https://bücher.example/',
    ' https://api.example/',
  ])('refuses %p: url_invalid', (url) => {
    expect(codeOf(() => parseRequestUrl(url))).toBe('url_invalid');
  });

  it.each([
    '/a/../b',
    '/a/./b',
    '/..',
    '/%2e%2e/a',
    '/a//b',
    '/a;b',
    '/a\\b',
    '/%41',
    '/%2F',
    '/%zz',
    '/%ff',
    '/a b',
    '/é',
    '/a#b',
    '/a\nb',
    '?a b',
    '#a',
    '\\a',
    '\\@evil.example/',
  ])('refuses the target %p: url_not_canonical', (target) => {
    expect(codeOf(() => parseRequestUrl(`https://api.example${target}`))).toBe('url_not_canonical');
  });
});
