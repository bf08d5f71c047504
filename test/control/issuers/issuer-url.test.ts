import { describe, expect, it } from '@jest/globals';
import {
  discoveryUrlOf,
  readIssuerUrl,
  readKeySetUrl,
  scopeOf,
} from '../../../src/control/issuers/validate-source.ts';

describe('an issuer', () => {
  it.each([
    ['https://issuer.example', 'issuer.example'],
    ['https://issuer.example/', 'issuer.example'],
    ['https://issuer.example/id/4F2A', 'issuer.example/id/4F2A'],
    ['https://issuer.example/id/4F2A/', 'issuer.example/id/4F2A'],
    ['https://issuer.example:6443', 'issuer.example:6443'],
    ['https://xn--bcher-kva.example/a', 'xn--bcher-kva.example/a'],
    ['https://1.1.1.1/a', '1.1.1.1/a'],
    ['https://[2606:4700::1]:8443/a', '[2606:4700::1]:8443/a'],
  ])('may be %s, whose scope is %s', (text, scope) => {
    const reading = readIssuerUrl(text);
    expect(reading.kind === 'url' && scopeOf(reading.url)).toBe(scope);
  });

  it.each(['https://issuer.example/?a=b', 'https://issuer.example/a?', 'https://issuer.example/?'])(
    'has no query: %s',
    (text) => {
      expect(readIssuerUrl(text)).toMatchObject({ code: 'url_has_query' });
    },
  );

  it('is at most 512 characters long', () => {
    const longest = `https://issuer.example/${'a'.repeat(512 - 23)}`;
    expect(readIssuerUrl(longest).kind).toBe('url');
    expect(readIssuerUrl(`${longest}a`)).toMatchObject({ code: 'url_malformed' });
    expect(readKeySetUrl(`${longest}a`)).toMatchObject({ code: 'url_malformed' });
  });
});

it('a key set may have a query', () => {
  expect(readKeySetUrl('https://issuer.example/keys?tenant=1').kind).toBe('url');
});

it.each([
  ['https://issuer.example', 'https://issuer.example/.well-known/openid-configuration'],
  ['https://issuer.example/', 'https://issuer.example/.well-known/openid-configuration'],
  ['https://issuer.example/id/1', 'https://issuer.example/id/1/.well-known/openid-configuration'],
  ['https://issuer.example/id/1/', 'https://issuer.example/id/1/.well-known/openid-configuration'],
])('%s is described at %s', (issuer, url) => {
  expect(discoveryUrlOf(issuer)).toBe(url);
});
