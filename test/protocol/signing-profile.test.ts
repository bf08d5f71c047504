import { describe, expect, it } from '@jest/globals';
import { parseSigningProfiles } from '../../src/protocol/signing-profile-file.ts';
import { profileDocument, routeDocument } from '../support/caller/signing.ts';

function parse(document: unknown) {
  return parseSigningProfiles(typeof document === 'string' ? document : JSON.stringify(document), 'p.yaml');
}

function messageOf(document: unknown): string {
  try {
    parse(document);
  } catch (error) {
    expect(error).toMatchObject({ name: 'ClientError', code: 'profile_invalid' });
    return error instanceof Error ? error.message : '';
  }
  return 'accepted';
}

describe('parseSigningProfiles', () => {
  it('reads YAML', () => {
    const text = `
format: proofgate.signing-profile/v1
auth_site: shop-eu-1
issuer: https://broker.shop.example
trust_domain: shop.example
subject: spiffe://shop.example/ns/prod/billing
key_binding: attested_workload
profiles:
  - route_id: upload
    name: up
    method: PUT
    path_template: /v1/files/{path*}
    audience: api
    origins: [ "https://api.shop.example", "http://127.0.0.1:8080" ]
    signed_headers: [ x-b, content-type ]
    body: unbound
`;
    expect(parse(text)).toEqual({
      coordinates: {
        authSite: 'shop-eu-1',
        keyId: undefined,
        issuer: 'https://broker.shop.example',
        trustDomain: 'shop.example',
        subject: 'spiffe://shop.example/ns/prod/billing',
        keyBinding: 'attested_workload',
      },
      profiles: [
        {
          name: 'up',
          routeId: 'upload',
          method: 'PUT',
          template: {
            kind: 'template',
            text: '/v1/files/{path*}',
            segments: [
              { kind: 'literal', text: 'v1' },
              { kind: 'literal', text: 'files' },
              { kind: 'rest', name: 'path' },
            ],
          },
          audience: 'api',
          origins: ['https://api.shop.example', 'http://127.0.0.1:8080'],
          signedHeaders: ['content-type', 'x-b'],
          body: 'unbound',
          passportHeader: 'authorization',
        },
      ],
    });
  });

  it('reads JSON, with defaults', () => {
    expect(parse(profileDocument()).profiles[0]).toMatchObject({
      name: 'orders',
      signedHeaders: [],
      body: 'bound',
      passportHeader: 'authorization',
    });
  });

  it.each([
    ['auth_site', { auth_site: 'a b' }],
    ['auth_site', { auth_site: 7 }],
    ['key_id', { key_id: 'x'.repeat(129) }],
    ['key_id', { key_id: null }],
    ['issuer', { issuer: '' }],
    ['trust_domain', { trust_domain: undefined }],
    ['subject', { subject: ['a'] }],
    ['subject', { subject: 'spiffe://shop.example/ns/../prod' }],
    ['key_binding', { key_binding: 'hardware' }],
    ['format', { format: 'proofgate.signing-profile/v2' }],
    ['secret', { secret: 'x' }],
    ['profiles', { profiles: undefined }],
    ['profiles', { profiles: [] }],
    ['profiles', { profiles: {} }],
    ['profiles[0]', { profiles: ['orders'] }],
  ])('refuses a wrong %s: %p', (place, members) => {
    expect(messageOf(profileDocument(members))).toMatch(`p.yaml: ${place} `);
  });

  it.each([
    ['route_id', { route_id: 'é' }],
    ['method', { method: 'GE T' }],
    ['path_template', { path_template: 'v1' }],
    ['audience', { audience: undefined }],
    ['origins', { origins: undefined }],
    ['origins', { origins: [] }],
    ['origins[0]', { origins: ['https://api.shop.example/'] }],
    ['origins[0]', { origins: ['https://api.shop.example:443'] }],
    ['origins[0]', { origins: ['HTTPS://api.shop.example'] }],
    ['origins[1]', { origins: ['https://a.example', 'https://a.example'] }],
    ['signed_headers[0]', { signed_headers: ['Content-Type'] }],
    ['signed_headers[0]', { signed_headers: ['authorization'] }],
    [
      'signed_headers[0]',
      { signed_headers: ['x-proofgate-passport'], passport_header: 'X-Proofgate-Passport' },
    ],
    ['body', { body: 'ignored' }],
    ['name', { name: '' }],
    ['ttl', { ttl: 60 }],
  ])('refuses a wrong %s in a profile: %p', (member, members) => {
    const document = profileDocument({ profiles: [routeDocument(members)] });
    expect(messageOf(document)).toMatch(`p.yaml: profiles[0].${member} `);
  });

  it.each([
    ['route_id', routeDocument({ name: 'other' })],
    ['name', routeDocument({ name: 'orders', route_id: 'other' })],
  ])('refuses two profiles of one %s', (member, second) => {
    const document = profileDocument({ profiles: [routeDocument(), second] });
    expect(messageOf(document)).toMatch(`p.yaml: profiles[1].${member} `);
  });

  it.each([
    ['not a mapping', '[]'],
    ['empty', ''],
    ['a scalar', 'x'],
    ['broken', 'auth_site: "x'],
    ['a member twice', 'auth_site: a\nauth_site: b'],
    ['an alias', 'auth_site: &a x\nissuer: *a'],
    ['an unknown tag', 'auth_site: !env X'],
    ['two documents', 'auth_site: a\n---\nauth_site: b'],
  ])('refuses a file that is %s', (_case, text) => {
    expect(messageOf(text)).toMatch(/^p\.yaml: [^\n]+$/);
  });

  it('does not take a member from the prototype', () => {
    expect(messageOf('{"__proto__": {"auth_site": "x"}}')).toMatch('p.yaml: __proto__ ');
  });
});
