import { describe, expect, it } from '@jest/globals';
import { lintBundle } from '../../../src/bundle/authoring/lint-content.ts';
import { asContent } from '../../../src/bundle/format/shape.ts';
import {
  BROKER_ISSUER,
  bundleContent,
  CLIENT_ISSUER,
  type Edit,
  edited,
  newTestKeys,
  TRUST_DOMAIN,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const sound = bundleContent(keys);

function findings(...edits: readonly Edit[]): readonly string[] {
  const content = asContent('bundle', edited(sound, ...edits), 'bundle.yaml');
  return lintBundle(content).map(({ severity, code, path }) => `${severity} ${code} ${path}`);
}

const source = { issuer: CLIENT_ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' };
const addRoute = (id: string, method: string, template: string) => [
  { at: '/routes/-', put: { ...sound.routes[0], route_id: id, method, path_template: template } },
  {
    at: '/route_sources/-',
    put: { route_id: id, allowed_sources: [{ ...source, subject_exact: 'client:billing' }] },
  },
];

describe('lint', () => {
  it('finds nothing in sound content', () => {
    // The broker's rule on orders-read is reachable, and all that is granted exists.
    expect(findings()).toEqual([]);
  });

  const cases: readonly { name: string; edits: readonly Edit[]; found: readonly string[] }[] = [
    {
      name: 'what is no canonical SPIFFE ID, in a bundle that is signed already',
      edits: [
        { at: '/issuers/0/subject_prefixes/-', put: 'spiffe://shop.example/%2e/' },
        {
          at: '/clients/-',
          put: { ...sound.clients?.[0], client_id: 'odd', subject: 'spiffe://shop.example//', grants: [] },
        },
      ],
      found: [
        'warning subject_not_canonical /issuers/0/subject_prefixes/1',
        'warning subject_not_canonical /clients/1/subject',
      ],
    },
    {
      name: 'a body that the proof does not cover',
      edits: [{ at: '/routes/1/body', put: 'unbound' }],
      found: ['warning body_unbound /routes/1/body'],
    },
    {
      name: 'a passport for the upstream',
      edits: [{ at: '/routes/0/forward_authorization', put: true }],
      found: ['warning forward_authorization /routes/0/forward_authorization'],
    },
    {
      name: 'observations',
      edits: [
        { at: '/routes/0/enforcement', put: 'observe' },
        { at: '/routes/0/observe_until', put: '2020-01-01T00:00:00Z' },
        { at: '/routes/1/enforcement', put: 'observe' },
        { at: '/routes/1/observe_until', put: sound.expires_at },
        { at: '/unmatched', put: 'observe' },
        { at: '/unmatched_until', put: sound.expires_at },
      ],
      found: [
        'warning unmatched_observed /unmatched',
        'warning observation_over /routes/0/enforcement',
        'warning route_observed /routes/1/enforcement',
      ],
    },
    {
      name: 'a freshness class that is not known',
      edits: [{ at: '/routes/0/freshness_class', put: 'sometimes' }],
      found: ['warning freshness_class_unknown /routes/0/freshness_class'],
    },
    {
      name: 'long staleness',
      edits: [{ at: '/routes/0/max_staleness_seconds', put: 3601 }],
      found: ['notice staleness_long /routes/0/max_staleness_seconds'],
    },
    {
      name: 'staleness of a realtime route, which --realtime-staleness limits',
      edits: [
        { at: '/routes/0/freshness_class', put: 'realtime' },
        { at: '/routes/0/max_staleness_seconds', put: 3601 },
      ],
      found: ['notice staleness_of_realtime /routes/0/max_staleness_seconds'],
    },
    {
      name: 'a realtime route without a bound of its own',
      edits: [
        { at: '/routes/0/freshness_class', put: 'realtime' },
        { at: '/routes/0/max_staleness_seconds' },
      ],
      found: [],
    },
    {
      name: 'signed headers that transit rewrites, among others',
      edits: [
        {
          at: '/routes/0/signed_headers',
          put: [
            'accept-encoding',
            'content-type',
            'date',
            'idempotency-key',
            'range',
            'traceparent',
            'user-agent',
            'via',
            'x-forwarded-for',
            'x-tenant',
          ],
        },
      ],
      found: [0, 2, 4, 5, 6, 7, 8].map(
        (index) => `warning signed_header_rewritten /routes/0/signed_headers/${index}`,
      ),
    },
    ...['/shop.v1.Orders/Create', '/shop.v1.Orders/{method}', '/Orders/Create'].map((template) => ({
      name: `a bound body of ${template}`,
      edits: addRoute('orders-create', 'POST', template),
      found: ['warning grpc_body_bound /routes/2/path_template'],
    })),
    ...[
      ['POST', '/v1.0/orders'],
      ['POST', '/v1.0/{order}'],
      ['GET', '/shop.v1.Orders/Create'],
      ['POST', '/orders/Create'],
      ['POST', '/Orders/{id}'],
      ['POST', '/shop.v1.Orders/Create/more'],
    ].map(([method = '', template = '']) => ({
      name: `no gRPC: ${method} ${template}`,
      edits: addRoute('other', method, template),
      found: [],
    })),
    {
      name: 'a long life',
      edits: [{ at: '/expires_at', put: '2027-11-21T04:00:00Z' }],
      found: ['notice lifetime_long /expires_at'],
    },
    {
      name: 'an origin in the clear',
      edits: [{ at: '/origins/-', put: 'http://api.shop.example' }],
      found: ['warning origin_not_https /origins/1'],
    },
    {
      name: 'an issuer for anyone',
      edits: [{ at: '/issuers/0/subject_prefixes/-', put: '' }],
      found: ['warning issuer_speaks_for_anyone /issuers/0/subject_prefixes'],
    },
    {
      name: 'a method in lower case',
      edits: [{ at: '/routes/1/method', put: 'post' }],
      found: ['warning method_not_upper_case /routes/1/method'],
    },
    {
      name: 'a rule that no key can satisfy: binding',
      edits: [{ at: '/issuers/0/key_binding', put: 'software' }],
      found: ['warning source_unreachable /route_sources/0/allowed_sources/1'],
    },
    {
      name: 'a rule that no key can satisfy: trust domain',
      edits: [{ at: '/route_sources/0/allowed_sources/0/trust_domain', put: 'other.example' }],
      found: ['warning source_unreachable /route_sources/0/allowed_sources/0'],
    },
    {
      name: 'a rule that no key can satisfy: subject',
      edits: [{ at: '/route_sources/0/allowed_sources/0/subject_exact', put: 'client:biling' }],
      found: ['warning source_unreachable /route_sources/0/allowed_sources/0'],
    },
    {
      name: 'a rule that no key can satisfy: not spoken for',
      edits: [{ at: '/issuers/0/subject_prefixes/0', put: 'spiffe://shop.example/ns/test/' }],
      found: ['warning source_unreachable /route_sources/0/allowed_sources/1'],
    },
    {
      name: 'what a DPoP proof does not cover',
      edits: [
        { at: '/routes/0/accepted_proofs', put: ['dpop', 'http-message-signatures'] },
        { at: '/routes/0/unbound', put: ['route', 'site'] },
      ],
      found: ['warning dpop_unbound /routes/0/unbound'],
    },
    {
      name: 'access tokens on a realtime route, and rules that none of them can satisfy',
      edits: [
        { at: '/routes/0/accepted_proofs', put: ['dpop', 'transcript-v1'] },
        { at: '/routes/0/unbound', put: ['route', 'site'] },
        { at: '/routes/0/oauth_revocation', put: 'token_lifetime' },
        {
          at: '/oauth_issuers',
          put: [
            {
              issuer: 'https://login.shop.example',
              trust_domain: TRUST_DOMAIN,
              keys: [{ kid: 'k', alg: 'Ed25519', jwk: keys.bundle.publicKey.jwk }],
            },
          ],
        },
        ...['sub:orders', 'client_id:orders'].map((subject) => ({
          at: '/route_sources/0/allowed_sources/-',
          put: { ...source, issuer: 'https://login.shop.example', subject_exact: subject },
        })),
      ],
      found: [
        'warning dpop_unbound /routes/0/unbound',
        'warning oauth_revocation /routes/0/oauth_revocation',
        'warning source_unreachable /route_sources/0/allowed_sources/3',
      ],
    },
    {
      name: 'a route that no caller can call: the client was not granted enough',
      edits: [{ at: '/clients/0/grants/0/access', put: 'read' }],
      found: [
        'warning source_unreachable /route_sources/1/allowed_sources/0',
        'warning route_unreachable /route_sources/1/allowed_sources',
      ],
    },
    {
      name: 'a broker that no route asks for',
      edits: [{ at: '/route_sources/0/allowed_sources/1' }],
      found: ['notice issuer_unused /issuers/0'],
    },
    {
      name: 'a grant of nothing',
      edits: [{ at: '/clients/0/grants/-', put: { resource: 'odrers', access: 'read' } }],
      found: ['notice grant_unused /clients/0/grants/1/resource'],
    },
    {
      name: 'two clients of one identity',
      edits: [{ at: '/clients/-', put: { ...sound.clients?.[0], client_id: 'second' } }],
      found: ['warning client_identity_shared /clients/1/subject'],
    },
    {
      name: 'blocked: callers of the bundle, by subject and by key',
      edits: [
        {
          at: '/blocked',
          put: [
            { issuer: BROKER_ISSUER, subject: 'spiffe://shop.example/ns/prod/sa/billing' },
            { issuer: BROKER_ISSUER, holder_thumbprint: 'A'.repeat(43) },
            { issuer: CLIENT_ISSUER, subject: 'client:billing' },
          ],
        },
      ],
      found: [],
    },
    {
      name: 'blocked: nobody',
      edits: [
        {
          at: '/blocked',
          put: [
            { issuer: `${BROKER_ISSUER}/`, holder_thumbprint: 'A'.repeat(43) },
            { issuer: BROKER_ISSUER, subject: 'spiffe://other.example/ns/prod/sa/billing' },
            { issuer: CLIENT_ISSUER, subject: 'client:biling' },
          ],
        },
      ],
      found: [
        'warning block_unreachable /blocked/0',
        'warning block_unreachable /blocked/1',
        'warning block_unreachable /blocked/2',
      ],
    },
    {
      name: 'blocked: no canonical SPIFFE ID',
      edits: [
        { at: '/blocked', put: [{ issuer: BROKER_ISSUER, subject: 'spiffe://shop.example/ns/prod/../x' }] },
      ],
      found: ['warning subject_not_canonical /blocked/0/subject'],
    },
    {
      name: 'shadowed: the literal ends before the template does',
      edits: [
        ...addRoute('items', 'GET', '/v1/orders/{id}/items'),
        ...addRoute('search', 'GET', '/v1/orders/search'),
      ].map((edit) =>
        edit.at === '/routes/-' ? { ...edit, put: { ...edit.put, resource: 'orders' } } : edit,
      ),
      found: ['notice route_shadowed /routes/2/path_template'],
    },
    {
      name: 'shadowed: another method',
      edits: addRoute('search', 'POST', '/v1/orders/search'),
      found: ['notice route_shadowed /routes/0/path_template'],
    },
    {
      name: 'not shadowed: the literal is a route of the same method',
      edits: addRoute('search', 'GET', '/v1/orders/search'),
      found: [],
    },
    {
      name: 'shadowed: {name*}',
      edits: [...addRoute('files', 'GET', '/files/{path*}'), ...addRoute('index', 'GET', '/files/index')],
      found: ['notice route_shadowed /routes/2/path_template'],
    },
    {
      name: 'shadowed: {name*}, by a literal that has only another method',
      edits: [...addRoute('all', 'GET', '/v2/{path*}'), ...addRoute('create', 'POST', '/v2/orders')],
      found: ['warning method_shadowed /routes/2/path_template'],
    },
    {
      name: 'no method shadowed: it has a route below the literal',
      edits: [
        ...addRoute('all', 'GET', '/v2/{path*}'),
        ...addRoute('create', 'POST', '/v2/orders'),
        ...addRoute('order', 'GET', '/v2/orders/{id}'),
      ],
      found: [],
    },
  ];
  it.each(cases)('$name', ({ edits, found }) => {
    expect(findings(...edits)).toEqual(found);
  });

  it('says which request matches nothing, and which route takes precedence', () => {
    const textOf = (...edits: readonly Edit[]) =>
      lintBundle(asContent('bundle', edited(sound, ...edits), 'f'))[0]?.text;
    expect(textOf(...addRoute('search', 'POST', '/v1/orders/search'))).toMatch(
      / \/v1\/orders\/search .*: POST \/v1\/orders\/search takes/,
    );
    expect(
      textOf(...addRoute('all', 'GET', '/v2/{path*}'), ...addRoute('create', 'POST', '/v2/orders')),
    ).toMatch(/ \/v2\/orders\/any-other: POST \/v2\/orders takes/);
  });

  it('names issuers, not keys', () => {
    const content = asContent('bundle', edited(sound, { at: '/issuers/0/subject_prefixes', put: [''] }), 'f');
    expect(lintBundle(content)[0]?.text).toContain(BROKER_ISSUER);
  });
});
