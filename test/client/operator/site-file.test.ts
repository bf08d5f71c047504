import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { OperatorError } from '../../../src/client/operator/operator-error.ts';
import { parseSiteFile } from '../../../src/client/operator/site-file.ts';

const TEXT = readFileSync('bundles/site.yaml', 'utf8');

const BROKER = TEXT.slice(
  TEXT.indexOf('brokers:\n') + 'brokers:\n'.length,
  TEXT.indexOf('# Whom derived keys'),
);

function codeOf(text: string): string {
  try {
    parseSiteFile(text, 'site.yaml');
    return 'taken';
  } catch (error) {
    if (error instanceof OperatorError) return error.code;
    throw error;
  }
}

describe('parseSiteFile', () => {
  it('takes the example', () => {
    expect(parseSiteFile(TEXT, 'site.yaml').site.site_id).toBe('shop-eu-1');
  });

  const FAULTS: readonly (readonly [string, string])[] = [
    ['no YAML', 'a: [1'],
    ['nothing', ''],
    ['another format', TEXT.replace('site/v1', 'site/v2')],
    ['an unknown member', `${TEXT}\nextra: 1\n`],
    ['an unknown member of a route', TEXT.replace('    resource: orders\n', '    ressource: orders\n')],
    ['no origins', TEXT.replace('  origins: ["https://api.shop.example"]\n', '')],
    ['a member twice', TEXT.replace('fleet: europe', 'fleet: europe\nfleet: asia')],
    ['a route twice', TEXT.replace('route_id: orders-write', 'route_id: orders-read')],
    ['a client twice', TEXT.replace('client_id: reporting', 'client_id: billing')],
    ['a broker twice', TEXT.replace('brokers:\n', `brokers:\n${BROKER}`)],
    [
      'a broker without trust domain',
      TEXT.replace('broker.shop.example\n    trust_domain: shop.example\n', 'broker.shop.example\n'),
    ],
    ['a target twice', TEXT.replace('gateway-2', 'gateway-1')],
    ['a policy of a source that is not there', TEXT.replace('source: eu-1 cluster', 'source: eu-2 cluster')],
    ['a policy of a client that is not there', TEXT.replace('client: billing', 'client: bill')],
    [
      'a source of another kind',
      TEXT.replace('name: eu-1 cluster\n', 'name: eu-1 cluster\n    kind: saml\n'),
    ],
    ['an access of its own', TEXT.replace('access: write', 'access: admin')],
    [
      'a route without sources',
      TEXT.replace(/allowed_sources:[\s\S]*?(?= {2}- route_id: orders-write)/, 'allowed_sources: []\n'),
    ],
  ];
  it.each([
    ['a client', 'subject: client:billing', 'subject: spiffe://shop.example/ns/../billing'],
    ['an exact subject', 'subject_prefix: "client:"', 'subject_exact: "spiffe://shop.example/a,b"'],
    ['a prefix', 'subject_prefix: spiffe://shop.example/ns/', 'subject_prefix: spiffe://shop.example/ns//'],
    [
      "a broker's prefix",
      '["spiffe://shop.example/"]',
      '["spiffe://shop.example/", "SPIFFE://shop.example/"]',
    ],
  ])('refuses %s that is no canonical SPIFFE ID', (_what, from, to) => {
    const text = TEXT.replace(from, to);
    expect(text).not.toBe(TEXT);
    expect(codeOf(text)).toBe('site_file_invalid');
    // The scheme is the cause: with another scheme the same text is accepted.
    expect(codeOf(text.replaceAll(/spiffe:/gi, 'other:'))).toBe('taken');
  });

  it.each(FAULTS)('refuses %s', (_what, text) => {
    expect(text).not.toBe(TEXT);
    expect(codeOf(text)).toBe('site_file_invalid');
  });
});
