/** Tests every rule that a load enforces with one fault each: code and place. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { BundleError } from '../../../src/bundle/format/bundle-error.ts';
import { MAX_OBSERVATION_SECONDS } from '../../../src/bundle/format/bundle-limits.ts';
import { headOf } from '../../../src/bundle/format/chain.ts';
import { asContent } from '../../../src/bundle/format/shape.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { codeAndPath } from '../../support/bundle/rejection.ts';
import {
  AUTH_SITE,
  BROKER_ISSUER,
  bundleContent,
  CLIENT_ISSUER,
  type Edit,
  edited,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
  ORIGIN,
  TRUST_DOMAIN,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const sound = bundleContent(keys);
const es256 = newSigningKey('ES256').publicKey.jwk;
const FILE = 'bundle.jws';
const HEAD = headOf(undefined, Buffer.from('{}')) ?? '';

async function load(...edits: readonly Edit[]): Promise<Snapshot> {
  // Through JSON, as a file would come.
  const value: unknown = JSON.parse(JSON.stringify(edited(sound, ...edits)));
  return compileBundle(asContent('bundle', value, FILE), { file: FILE, head: HEAD });
}

interface Rule {
  readonly name: string;
  readonly edits: readonly Edit[];
  readonly error: string;
}

const rule = (name: string, error: string, ...edits: readonly Edit[]): Rule => ({ name, edits, error });

const issuer = sound.issuers?.[0];
const client = sound.clients?.[0];
const derivedKey = sound.derived_keys?.[0];
const route = sound.routes[0];
const source = { issuer: CLIENT_ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' };
const routeSources = (route_id: string) => ({
  route_id,
  allowed_sources: [{ ...source, subject_exact: 'client:billing' }],
});
const anotherRoute = (changes: object, id = 'another') => [
  { at: '/routes/-', put: { ...route, route_id: id, ...changes } },
  { at: '/route_sources/-', put: routeSources(id) },
];

/** A first route that accepts DPoP proofs, with a further edit. */
const dpop = (edit: Edit): readonly Edit[] => [
  { at: '/routes/0/accepted_proofs', put: ['dpop'] },
  { at: '/routes/0/unbound', put: ['route', 'site'] },
  edit,
];

const oauthKey = { kid: 'k1', alg: 'ES256', jwk: es256 };
const oauthIssuer = {
  issuer: 'https://login.shop.example',
  trust_domain: TRUST_DOMAIN,
  keys: [oauthKey],
};
const rsaKey = (modulusLength: number) => ({
  kid: 'r1',
  alg: 'RS256',
  jwk: generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' }),
});
/** Access tokens of one server, with a change. */
const oauth = (change: object): Edit => ({ at: '/oauth_issuers', put: [{ ...oauthIssuer, ...change }] });

const OAUTH: readonly Rule[] = [
  rule("a broker's issuer", 'issuer_of_client /oauth_issuers/0/issuer', oauth({ issuer: issuer?.issuer })),
  rule("a client's issuer", 'issuer_of_client /oauth_issuers/0/issuer', oauth({ issuer: CLIENT_ISSUER })),
  rule('an issuer twice', 'duplicate /oauth_issuers/1/issuer', {
    at: '/oauth_issuers',
    put: [oauthIssuer, oauthIssuer],
  }),
  rule('a kid twice', 'duplicate /oauth_issuers/0/keys/1/kid', oauth({ keys: [oauthKey, oauthKey] })),
  rule(
    'a key of another algorithm',
    'key_refused /oauth_issuers/0/keys/0/jwk',
    oauth({ keys: [{ ...oauthKey, alg: 'RS256' }] }),
  ),
  rule(
    'a symmetric algorithm',
    'value_invalid /oauth_issuers/0/keys/0/alg',
    oauth({ keys: [{ ...oauthKey, alg: 'HS256' }] }),
  ),
  rule('a short RSA key', 'key_refused /oauth_issuers/0/keys/0/jwk', oauth({ keys: [rsaKey(1024)] })),
  ...['client_id', 'azp'].map((subject_claim) =>
    rule(
      `${subject_claim} as subject without a marker`,
      'missing_member /oauth_issuers/0/service_marker',
      oauth({ subject_claim }),
    ),
  ),
  rule(
    'an unknown type of token',
    'value_invalid /oauth_issuers/0/token_types/0',
    oauth({ token_types: ['id'] }),
  ),
  rule(
    'long tokens',
    'value_invalid /oauth_issuers/0/max_token_ttl_seconds',
    oauth({ max_token_ttl_seconds: 3601 }),
  ),
  rule('oauth_revocation without dpop', 'value_invalid /routes/0/oauth_revocation', {
    at: '/routes/0/oauth_revocation',
    put: 'token_lifetime',
  }),
];

const SHAPE: readonly Rule[] = [
  rule('unknown member', 'unknown_member /surprise', { at: '/surprise', put: 1 }),
  rule('unknown member of a route', 'unknown_member /routes/0/paht', { at: '/routes/0/paht', put: 1 }),
  rule('a member named __proto__', 'unknown_member /__proto__', { at: '/__proto__', put: {} }),
  rule('an unknown member with a slash in its name', 'unknown_member /routes/0/a~1b~0c', {
    at: '/routes/0',
    put: { ...sound.routes[0], 'a/b~c': 1 },
  }),
  rule('unknown member of an issuer', 'unknown_member /issuers/0/x', { at: '/issuers/0/x', put: 1 }),
  rule('unknown member of an issuer key', 'unknown_member /issuers/0/keys/0/use', {
    at: '/issuers/0/keys/0/use',
    put: 'sig',
  }),
  rule('unknown member of a grant', 'unknown_member /clients/0/grants/0/x', {
    at: '/clients/0/grants/0/x',
    put: 1,
  }),
  rule('unknown member of a derived key', 'unknown_member /derived_keys/0/alg', {
    at: '/derived_keys/0/alg',
    put: 'Ed25519',
  }),
  rule('unknown member of a source', 'unknown_member /route_sources/0/allowed_sources/0/subject', {
    at: '/route_sources/0/allowed_sources/0/subject',
    put: 'x',
  }),
  rule('format', 'value_invalid /format', { at: '/format', put: 'proofgate.bundle/v2' }),
  rule('no auth_site', 'missing_member /auth_site', { at: '/auth_site' }),
  rule('auth_site with a space', 'value_invalid /auth_site', { at: '/auth_site', put: 'a b' }),
  rule('auth_site too long', 'value_invalid /auth_site', { at: '/auth_site', put: 'x'.repeat(513) }),
  rule('auth_site beyond ASCII', 'value_invalid /auth_site', { at: '/auth_site', put: 'sité' }),
  rule('revision 0', 'value_invalid /revision', { at: '/revision', put: 0 }),
  rule('revision not whole', 'value_invalid /revision', { at: '/revision', put: 1.5 }),
  rule('revision too large', 'value_invalid /revision', { at: '/revision', put: 2 ** 53 }),
  rule('revision as text', 'value_invalid /revision', { at: '/revision', put: '1' }),
  rule('previous_head too short', 'value_invalid /previous_head', { at: '/previous_head', put: 'abc' }),
  rule('skew 0', 'value_invalid /skew_seconds', { at: '/skew_seconds', put: 0 }),
  rule('skew 61', 'value_invalid /skew_seconds', { at: '/skew_seconds', put: 61 }),
  rule('single_verifier as text', 'value_invalid /single_verifier', { at: '/single_verifier', put: 'no' }),
  rule('no origins', 'value_invalid /origins', { at: '/origins', put: [] }),
  rule('an origin twice', 'duplicate /origins', { at: '/origins', put: [ORIGIN, ORIGIN] }),
  rule('passport ttl 0', 'value_invalid /issuers/0/max_passport_ttl_seconds', {
    at: '/issuers/0/max_passport_ttl_seconds',
    put: 0,
  }),
  rule('passport ttl 3601', 'value_invalid /issuers/0/max_passport_ttl_seconds', {
    at: '/issuers/0/max_passport_ttl_seconds',
    put: 3601,
  }),
  rule('no subject prefixes', 'value_invalid /issuers/0/subject_prefixes', {
    at: '/issuers/0/subject_prefixes',
    put: [],
  }),
  rule('unknown key binding', 'value_invalid /issuers/0/key_binding', {
    at: '/issuers/0/key_binding',
    put: 'hardware',
  }),
  rule('issuer without keys', 'value_invalid /issuers/0/keys', { at: '/issuers/0/keys', put: [] }),
  rule('kid too long', 'value_invalid /issuers/0/keys/0/kid', {
    at: '/issuers/0/keys/0/kid',
    put: 'k'.repeat(129),
  }),
  rule('unknown algorithm', 'value_invalid /issuers/0/keys/0/alg', {
    at: '/issuers/0/keys/0/alg',
    put: 'EdDSA',
  }),
  rule('access', 'value_invalid /clients/0/grants/0/access', {
    at: '/clients/0/grants/0/access',
    put: 'admin',
  }),
  rule('context value not a string', 'value_invalid /clients/0/context/environment', {
    at: '/clients/0/context/environment',
    put: ['production'],
  }),
  rule('context name with a space', 'unknown_member /clients/0/context/the environment', {
    at: '/clients/0/context/the environment',
    put: 'production',
  }),
  rule('status', 'value_invalid /derived_keys/0/status', { at: '/derived_keys/0/status', put: 'paused' }),
  rule('no expiry', 'missing_member /derived_keys/0/expires_at', { at: '/derived_keys/0/expires_at' }),
  rule('max_staleness 0', 'value_invalid /routes/0/max_staleness_seconds', {
    at: '/routes/0/max_staleness_seconds',
    put: 0,
  }),
  rule('method with a space', 'value_invalid /routes/0/method', { at: '/routes/0/method', put: 'GET /' }),
  rule('body', 'value_invalid /routes/0/body', { at: '/routes/0/body', put: 'loose' }),
  rule('required context without values', 'value_invalid /routes/0/required_context/environment', {
    at: '/routes/0/required_context',
    put: { environment: [] },
  }),
  rule('required provenance name with a space', 'unknown_member /routes/0/required_provenance/a b', {
    at: '/routes/0/required_provenance',
    put: { 'a b': ['x'] },
  }),
  rule('a signed header twice', 'duplicate /routes/0/signed_headers', {
    at: '/routes/0/signed_headers',
    put: ['x-a', 'x-a'],
  }),
  rule('no required_key_binding', 'missing_member /route_sources/0/allowed_sources/0/required_key_binding', {
    at: '/route_sources/0/allowed_sources/0/required_key_binding',
  }),
  rule('no allowed sources', 'value_invalid /route_sources/0/allowed_sources', {
    at: '/route_sources/0/allowed_sources',
    put: [],
  }),
  rule('shard outside the directory', 'value_invalid /key_shards/0/file', {
    at: '/key_shards',
    put: [{ file: '../keys-0001.jsonl', count: 1, sha256: HEAD }],
  }),
];

const TIMES: readonly Rule[] = [
  rule('local time', 'value_invalid /issued_at', { at: '/issued_at', put: '2026-11-21T04:00:00+01:00' }),
  rule('fraction', 'value_invalid /issued_at', { at: '/issued_at', put: '2026-11-21T04:00:00.5Z' }),
  rule('lower case', 'value_invalid /issued_at', { at: '/issued_at', put: '2026-11-21t04:00:00z' }),
  rule('30 February', 'time_invalid /issued_at', { at: '/issued_at', put: '2026-02-30T04:00:00Z' }),
  rule('24 o’clock', 'time_invalid /issued_at', { at: '/issued_at', put: '2026-02-20T24:00:00Z' }),
  rule('leap second', 'time_invalid /expires_at', { at: '/expires_at', put: '2026-12-31T23:59:60Z' }),
  rule('expires when issued', 'time_order /expires_at', { at: '/expires_at', put: sound.issued_at }),
  rule('derived key', 'time_invalid /derived_keys/0/expires_at', {
    at: '/derived_keys/0/expires_at',
    put: '2026-13-01T00:00:00Z',
  }),
  rule(
    'key ends before it begins',
    'time_order /issuers/0/keys/0/not_after',
    {
      at: '/issuers/0/keys/0/not_before',
      put: '2026-11-22T00:00:00Z',
    },
    { at: '/issuers/0/keys/0/not_after', put: '2026-11-21T00:00:00Z' },
  ),
];

const ROUTES: readonly Rule[] = [
  ...[
    'https://api.shop.example/',
    'https://API.shop.example',
    'https://api.shop.example:443',
    'https://user@api.shop.example',
    'https://api.shop.example.',
    'ftp://api.shop.example',
  ].map((origin) => rule(`origin ${origin}`, 'origin_invalid /origins/1', { at: '/origins/-', put: origin })),
  rule('origin of a route not of the site', 'origin_not_of_site /routes/0/origins/0', {
    at: '/routes/0/origins',
    put: ['https://other.example'],
  }),
  ...[
    ['/v1/{a}/{a}', 'repeated placeholder'],
    ['/v1/{a*}/x', '{name*} not last'],
    ['/v1/x{a}', 'part of a segment'],
    ['/v1/{}', 'no name'],
    ['/v1/{a-b}', 'name with a hyphen'],
    ['/v1/{a', 'unclosed'],
    ['/v1//x', 'empty segment'],
    ['/v1/../x', 'dot segment'],
    ['/v1/%41', 'needless escape'],
    ['/v1/a;b', 'semicolon'],
    ['/v1?x=1', 'query'],
    ['/v1#x', 'fragment'],
  ].map(([template, why]) =>
    rule(`template: ${why}`, 'template_invalid /routes/0/path_template', {
      at: '/routes/0/path_template',
      put: template,
    }),
  ),
  rule('template without slash', 'value_invalid /routes/0/path_template', {
    at: '/routes/0/path_template',
    put: 'v1',
  }),
  rule('a route twice', 'duplicate /routes/2/route_id', {
    at: '/routes/-',
    put: { ...route, path_template: '/v2' },
  }),
  rule(
    'two routes for the same request',
    'route_conflict /routes/2/path_template',
    ...anotherRoute({ path_template: '/v1/orders/{other_name}' }),
  ),
  rule(
    'two routes for the same request at one of their origins',
    'route_conflict /routes/2/path_template',
    { at: '/origins/-', put: 'https://b.example' },
    ...anotherRoute({ path_template: '/v1/orders/{x}', origins: ['https://b.example'] }),
  ),
  rule(
    '{name*} beside {name}',
    'route_conflict /routes/2/path_template',
    ...anotherRoute({ path_template: '/v1/orders/{rest*}', method: 'DELETE' }),
  ),
  rule(
    '{name} beside {name*}',
    'route_conflict /routes/3/path_template',
    ...anotherRoute({ path_template: '/v2/{rest*}' }),
    ...anotherRoute({ path_template: '/v2/{one}/x' }, 'third'),
  ),
  ...['authorization', 'x-proofgate-subject', 'X-Tenant', 'a b', '-x'].map((name) =>
    rule(`signed header ${name}`, 'header_not_signable /routes/0/signed_headers/1', {
      at: '/routes/0/signed_headers',
      put: ['x-ok', name],
    }),
  ),
  rule('a passport in a header of another name', 'value_invalid /routes/0/passport_header', {
    at: '/routes/0/passport_header',
    put: 'X-Passport',
  }),
  rule(
    'passport_header with forward_authorization',
    'value_invalid /routes/0/passport_header',
    { at: '/routes/0/passport_header', put: 'X-Proofgate-Passport' },
    { at: '/routes/0/forward_authorization', put: true },
  ),
  rule('an unknown format of proofs', 'value_invalid /routes/0/accepted_proofs/0', {
    at: '/routes/0/accepted_proofs',
    put: ['bearer'],
  }),
  rule('dpop without unbound', 'missing_member /routes/0/unbound', {
    at: '/routes/0/accepted_proofs',
    put: ['dpop'],
  }),
  ...[[], ['route'], ['site', 'query', 'body', 'headers']].map((unbound) =>
    rule(
      `dpop with unbound ${unbound}`,
      'value_invalid /routes/0/unbound',
      ...dpop({ at: '/routes/0/unbound', put: unbound }),
    ),
  ),
  rule(
    'an unknown part in unbound',
    'value_invalid /routes/0/unbound/2',
    ...dpop({ at: '/routes/0/unbound/-', put: 'method' }),
  ),
  rule('dpop_nonce without dpop', 'value_invalid /routes/0/dpop_nonce', {
    at: '/routes/0/dpop_nonce',
    put: 'required',
  }),
  rule('unbound without dpop', 'value_invalid /routes/0/unbound', {
    at: '/routes/0/unbound',
    put: ['route', 'site'],
  }),
  rule(
    'dpop beside signed headers that are not given up',
    'value_invalid /routes/0/unbound',
    ...dpop({ at: '/routes/0/signed_headers', put: ['x-tenant'] }),
  ),
  rule(
    'dpop with passport_header',
    'value_invalid /routes/0/passport_header',
    ...dpop({ at: '/routes/0/passport_header', put: 'X-Proofgate-Passport' }),
  ),
  rule('no format of proofs', 'value_invalid /routes/0/accepted_proofs', {
    at: '/routes/0/accepted_proofs',
    put: [],
  }),
  rule('an observed route without an end', 'missing_member /routes/0/observe_until', {
    at: '/routes/0/enforcement',
    put: 'observe',
  }),
  rule('an end without an observation', 'value_invalid /routes/0/observe_until', {
    at: '/routes/0/observe_until',
    put: formatTime(NOW_SECONDS + 60),
  }),
  rule(
    'an observation of more than 30 days',
    'value_invalid /routes/0/observe_until',
    { at: '/routes/0/enforcement', put: 'observe' },
    { at: '/routes/0/observe_until', put: formatTime(NOW_SECONDS + MAX_OBSERVATION_SECONDS + 1) },
  ),
  rule('another enforcement than observe', 'value_invalid /routes/0/enforcement', {
    at: '/routes/0/enforcement',
    put: 'enforce',
  }),
  rule('unmatched requests observed without an end', 'missing_member /unmatched_until', {
    at: '/unmatched',
    put: 'observe',
  }),
  rule(
    'unmatched requests observed until a day that does not exist',
    'time_invalid /unmatched_until',
    { at: '/unmatched', put: 'observe' },
    { at: '/unmatched_until', put: '2026-02-30T00:00:00Z' },
  ),
  rule('bounded without max_staleness_seconds', 'max_staleness_missing /routes/0/max_staleness_seconds', {
    at: '/routes/0/max_staleness_seconds',
  }),
  rule('a route without a source set', 'source_set_missing /routes/0/route_id', { at: '/route_sources/0' }),
  rule('a source set without a route', 'route_unknown /route_sources/2/route_id', {
    at: '/route_sources/-',
    put: routeSources('orders-delete'),
  }),
  rule('two source sets for a route', 'duplicate /route_sources/2/route_id', {
    at: '/route_sources/-',
    put: routeSources('orders-read'),
  }),
  rule('both subject selectors', 'subject_selector /route_sources/0/allowed_sources/0', {
    at: '/route_sources/0/allowed_sources/0/subject_prefix',
    put: 'client:',
  }),
  rule('no subject selector', 'subject_selector /route_sources/0/allowed_sources/0', {
    at: '/route_sources/0/allowed_sources/0/subject_exact',
  }),
  rule('blocked: neither subject nor holder', 'subject_selector /blocked/0', {
    at: '/blocked',
    put: [{ issuer: BROKER_ISSUER }],
  }),
  rule('blocked: subject and holder', 'subject_selector /blocked/0', {
    at: '/blocked',
    put: [{ issuer: BROKER_ISSUER, subject: 'ci:a', holder_thumbprint: 'A'.repeat(43) }],
  }),
  rule('blocked: a thumbprint in another spelling', 'value_invalid /blocked/0/holder_thumbprint', {
    at: '/blocked',
    put: [{ issuer: BROKER_ISSUER, holder_thumbprint: `${'A'.repeat(42)}B` }],
  }),
  rule('blocked: a thumbprint that is none', 'value_invalid /blocked/0/holder_thumbprint', {
    at: '/blocked',
    put: [{ issuer: BROKER_ISSUER, holder_thumbprint: 'abc' }],
  }),
  rule('blocked: an entry twice', 'duplicate /blocked/1', {
    at: '/blocked',
    put: [
      { issuer: BROKER_ISSUER, subject: 'ci:a' },
      { issuer: BROKER_ISSUER, subject: 'ci:a' },
    ],
  }),
  rule('blocked: a prefix', 'unknown_member /blocked/0/subject_prefix', {
    at: '/blocked',
    put: [{ issuer: BROKER_ISSUER, subject_prefix: 'ci:' }],
  }),
  rule('blocked: no issuer', 'missing_member /blocked/0/issuer', {
    at: '/blocked',
    put: [{ subject: 'ci:a' }],
  }),
  rule('open prefix', 'subject_prefix_open /route_sources/0/allowed_sources/1/subject_prefix', {
    at: '/route_sources/0/allowed_sources/1/subject_prefix',
    put: 'spiffe://shop.example/ns/prod',
  }),
  rule('empty prefix', 'value_invalid /route_sources/0/allowed_sources/1/subject_prefix', {
    at: '/route_sources/0/allowed_sources/1/subject_prefix',
    put: '',
  }),
  ...['spiffe://other.example/ns/', 'spiffe://', 'spiffe:', 'SPIFFE://shop.example/'].map((prefix) =>
    rule(
      `prefix ${prefix}`,
      'subject_outside_trust_domain /route_sources/0/allowed_sources/1/subject_prefix',
      {
        at: '/route_sources/0/allowed_sources/1/subject_prefix',
        put: prefix,
      },
    ),
  ),
  rule(
    'subject of another trust domain',
    'subject_outside_trust_domain /route_sources/0/allowed_sources/0/subject_exact',
    {
      at: '/route_sources/0/allowed_sources/0/subject_exact',
      put: 'spiffe://shop.example.evil/x',
    },
  ),
];

const IDENTITIES: readonly Rule[] = [
  rule("a broker with a client's issuer", 'issuer_of_client /issuers/0/issuer', {
    at: '/issuers/0/issuer',
    put: CLIENT_ISSUER,
  }),
  rule('an issuer twice', 'duplicate /issuers/1', {
    at: '/issuers/-',
    put: edited(issuer, { at: '/keys/0/kid', put: 'broker-2' }),
  }),
  rule('open issuer prefix', 'subject_prefix_open /issuers/0/subject_prefixes/0', {
    at: '/issuers/0/subject_prefixes/0',
    put: 'spiffe://shop.example/ns',
  }),
  rule(
    'issuer prefix of another trust domain',
    'subject_outside_trust_domain /issuers/0/subject_prefixes/0',
    {
      at: '/issuers/0/subject_prefixes/0',
      put: 'spiffe://other.example/',
    },
  ),
  rule('a client twice', 'duplicate /clients/1/client_id', { at: '/clients/-', put: client }),
  rule('a grant twice', 'duplicate /clients/0/grants/1/resource', {
    at: '/clients/0/grants/-',
    put: { resource: 'orders', access: 'read' },
  }),
  rule('client subject of another trust domain', 'subject_outside_trust_domain /clients/0/subject', {
    at: '/clients/0/subject',
    put: 'spiffe://other.example/billing',
  }),
  rule('a derived key of an unknown client', 'client_unknown /derived_keys/0/client_id', {
    at: '/derived_keys/0/client_id',
    put: 'shipping',
  }),
  rule('a derived key twice', 'duplicate /derived_keys/1/key_id', { at: '/derived_keys/-', put: derivedKey }),
  rule('key_id equal to a kid', 'duplicate /derived_keys/0/key_id', {
    at: '/derived_keys/0/key_id',
    put: 'broker-1',
  }),
  rule('a kid twice', 'duplicate /issuers/0/keys/1/kid', {
    at: '/issuers/0/keys/-',
    put: issuer?.keys[0],
  }),
  rule('a trust anchor source twice', 'duplicate /trust_anchor_sources/1/id', {
    at: '/trust_anchor_sources',
    put: [1, 2].map((revision) => ({ id: 'tas_1', revision, fingerprint: 'f' })),
  }),
  rule('a shard twice', 'duplicate /key_shards/1/file', {
    at: '/key_shards',
    put: [1, 2].map((count) => ({ file: 'keys-0001.jsonl', count, sha256: HEAD })),
  }),
];

const ED25519 = { kty: 'OKP', crv: 'Ed25519' };
const zeros = (last = 0) => Buffer.concat([Buffer.alloc(31), Buffer.from([last])]).toString('base64url');
const little = (first: number) =>
  Buffer.concat([Buffer.from([first]), Buffer.alloc(31)]).toString('base64url');
const KEYS: readonly Rule[] = [
  ...(
    [
      ['identity', { ...ED25519, x: little(1) }],
      ['small order, y = 0', { ...ED25519, x: little(0) }],
      [
        'not canonical, y = p',
        { ...ED25519, x: Buffer.from(`ed${'ff'.repeat(30)}7f`, 'hex').toString('base64url') },
      ],
      ['mixed order', { ...ED25519, x: negatedBasePoint() }],
      ['not canonical base64url', { ...ED25519, x: `${zeros().slice(0, 42)}B` }],
      ['P-256 not on the curve', { kty: 'EC', crv: 'P-256', x: zeros(1), y: zeros(1) }],
      ['RSA', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
      ['a private key', { ...derivedKey?.jwk, d: zeros(1) }],
      ['X25519', { kty: 'OKP', crv: 'X25519', x: zeros(9) }],
      ['no object', 'key'],
    ] as const
  ).map(([name, jwk]) =>
    rule(`derived key: ${name}`, 'key_refused /derived_keys/0/jwk', { at: '/derived_keys/0/jwk', put: jwk }),
  ),
  rule('issuer key', 'key_refused /issuers/0/keys/0/jwk', {
    at: '/issuers/0/keys/0/jwk',
    put: { ...ED25519, x: little(1) },
  }),
  rule('alg of another kind than the key', 'key_algorithm /issuers/0/keys/0/alg', {
    at: '/issuers/0/keys/0/jwk',
    put: es256,
  }),
];

/** The base point plus (0, -1): both coordinates negated, of order 2L. OpenSSL takes it. */
function negatedBasePoint(): string {
  const p = 2n ** 255n - 19n;
  const y = p - 46316835694926478169428394003475163141307993866256225615783033603165251855960n;
  // x of B is even (its sign bit is 0), so that p - x is odd.
  const hex = (y | (1n << 255n)).toString(16).padStart(64, '0');
  return Buffer.from(hex, 'hex').reverse().toString('base64url');
}

const ODD_SUBJECTS = [
  { at: '/clients/0/subject', put: `spiffe://${TRUST_DOMAIN}/ns/prod/` },
  { at: '/route_sources/0/allowed_sources/0/subject_exact', put: `spiffe://${TRUST_DOMAIN}/a,b` },
  { at: '/route_sources/0/allowed_sources/1/subject_prefix', put: `spiffe://${TRUST_DOMAIN}/ns/../` },
  { at: '/issuers/0/subject_prefixes/0', put: `spiffe://${TRUST_DOMAIN}//` },
];

describe('rules that a load enforces', () => {
  it('takes the sound content', async () => {
    const snapshot = await load();
    expect(snapshot.routes.size).toBe(2);
    expect(snapshot.keys.size).toBe(2);
  });

  describe.each([
    ['shape', SHAPE],
    ['times', TIMES],
    ['routes and sources', ROUTES],
    ['identities', IDENTITIES],
    ['keys', KEYS],
    ['OAuth issuers', OAUTH],
  ])('%s', (_name, rules) => {
    it.each(rules)('$name', async ({ edits, error }) => {
      expect(await codeAndPath(() => load(...edits))).toBe(error);
    });
  });

  // Sites may have them from before this was a rule: docs/design/bundle.md "Rules that a load enforces".
  it('takes what is no canonical SPIFFE ID, and warns: it matches nothing', async () => {
    const good = { at: '/issuers/0/subject_prefixes/-', put: `spiffe://${TRUST_DOMAIN}/ok/` };
    const snapshot = await load(...ODD_SUBJECTS, good);
    expect(snapshot.warnings.map(({ code, path }) => `${code} ${path}`).sort()).toEqual(
      ODD_SUBJECTS.map(({ at }) => `subject_not_canonical ${at}`).sort(),
    );
    const match = snapshot.routes.match('GET', ORIGIN, '/v1/orders/17');
    const sources = match.kind === 'route' ? match.route.sources : [];
    expect(sources.map(({ subject }) => subject.isCanonical)).toEqual([false, false]);
    const key = snapshot.keys.get('broker-1');
    expect(key?.kind === 'issuer_key' && key.issuer.subjectPrefixes).toEqual([
      `spiffe://${TRUST_DOMAIN}/ok/`,
    ]);
    expect((await load()).warnings).toEqual([]);
  });

  it.each(ODD_SUBJECTS)('refuses it before it is signed: $at', async (edit) => {
    const content = asContent('bundle', JSON.parse(JSON.stringify(edited(sound, edit))), FILE);
    const compile = () => compileBundle(content, { file: FILE, head: HEAD, isBeingWritten: true });
    expect(await codeAndPath(compile)).toBe(`subject_not_canonical ${edit.at}`);
  });

  it('reports all faults together, each with its file and place', async () => {
    const error: unknown = await load(
      { at: '/routes/0/path_template', put: '/a/{b' },
      { at: '/derived_keys/0/client_id', put: 'shipping' },
    ).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BundleError);
    const faults = error instanceof BundleError ? error.faults : [];
    expect(faults.map(({ code, file, path }) => [code, file, path])).toEqual([
      ['template_invalid', FILE, '/routes/0/path_template'],
      ['client_unknown', FILE, '/derived_keys/0/client_id'],
    ]);
  });

  it('shows values, short, but none of a key', async () => {
    const long = await load({ at: '/auth_site', put: 'é'.repeat(5000) }).catch(String);
    expect(String(long).length).toBeLessThan(300);
    const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I';
    const key = await load({ at: '/derived_keys/0/jwk/d', put: secret }).catch(String);
    expect(key).toContain('/derived_keys/0/jwk');
    expect(key).not.toContain(secret);
  });

  it.each([
    [
      'the private member first',
      '/derived_keys/0/jwk',
      (d: string) => ({ d, kty: 'OKP', crv: 'Ed25519', x: 'a' }),
    ],
    ['text instead of a key', '/derived_keys/0/jwk', (d: string) => d],
    ['a mapping a level up', '/derived_keys', (d: string) => ({ d })],
    ['a list a level up', '/derived_keys/0', (d: string) => [d]],
  ])('shows nothing of a private key in the wrong place: %s', async (_name, at, put) => {
    const secret = 'r1SecretSecretSecret';
    const error = await load({ at, put: put(secret) }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BundleError);
    expect(String(error)).not.toContain(secret);
  });
});

describe('what is allowed', () => {
  const ALLOWED: readonly { readonly name: string; readonly edits: readonly Edit[] }[] = [
    { name: 'an unknown freshness class', edits: [{ at: '/routes/0/freshness_class', put: 'sometimes' }] },
    { name: 'realtime with a limit', edits: [{ at: '/routes/1/max_staleness_seconds', put: 5 }] },
    { name: 'a broker for any subject', edits: [{ at: '/issuers/0/subject_prefixes', put: [''] }] },
    { name: 'a P-256 derived key', edits: [{ at: '/derived_keys/0/jwk', put: es256 }] },
    { name: 'no issuers', edits: [{ at: '/issuers' }] },
    { name: 'no clients', edits: [{ at: '/clients', put: [] }, { at: '/derived_keys' }] },
    { name: 'skew of 60', edits: [{ at: '/skew_seconds', put: 60 }] },
    { name: 'names of Object.prototype', edits: [{ at: '/clients/0/context/constructor', put: 'x' }] },
  ];
  it.each(ALLOWED)('$name', async ({ edits }) => {
    expect((await load(...edits)).authSite).toBe(AUTH_SITE);
  });

  it('tells routes apart by origin or by method', async () => {
    const second = 'https://b.example';
    const snapshot = await load(
      { at: '/origins/-', put: second },
      { at: '/routes/0/origins', put: [ORIGIN] },
      ...anotherRoute({ path_template: '/v1/orders/{x}', origins: [second] }),
      ...anotherRoute({ path_template: '/v1/orders/{x}', method: 'DELETE' }, 'third'),
    );
    expect(snapshot.routes.match('GET', second, '/v1/orders/1')).toMatchObject({
      route: { routeId: 'another' },
    });
  });
});

describe('the snapshot', () => {
  it('has the ends of observations, past ones too', async () => {
    const past = NOW_SECONDS - 60;
    const latest = NOW_SECONDS + MAX_OBSERVATION_SECONDS;
    const snapshot = await load(
      { at: '/routes/0/enforcement', put: 'observe' },
      { at: '/routes/0/observe_until', put: formatTime(past) },
      { at: '/unmatched', put: 'observe' },
      { at: '/unmatched_until', put: formatTime(latest) },
    );
    expect(snapshot).toMatchObject({ unmatchedUntilSeconds: latest });
    expect(snapshot.routes.find('orders-read')).toMatchObject({ observeUntilSeconds: past });
    expect(snapshot.routes.find('orders-write')).toMatchObject({ observeUntilSeconds: undefined });
  });

  it('has the defaults', async () => {
    const snapshot = await load();
    expect(snapshot).toMatchObject({
      authSite: AUTH_SITE,
      revision: 1,
      head: HEAD,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 86_400,
      freshAsOfSeconds: NOW_SECONDS,
      skewSeconds: 5,
      singleVerifier: false,
    });
    const read = snapshot.routes.match('GET', ORIGIN, '/v1/orders/17');
    expect(read).toMatchObject({
      route: {
        routeId: 'orders-read',
        access: 'read',
        body: 'bound',
        upgrade: undefined,
        passportHeader: 'authorization',
        forwardAuthorization: false,
        signedHeaders: [],
        freshness: { kind: 'bounded', maxStalenessSeconds: 300 },
      },
    });
    expect(snapshot.routes.match('POST', ORIGIN, '/v1/orders')).toMatchObject({
      route: { access: 'write', freshness: { kind: 'realtime', maxStalenessSeconds: undefined } },
    });
    expect(snapshot.keys.get('broker-1')).toMatchObject({
      kind: 'issuer_key',
      issuer: { issuer: BROKER_ISSUER, maxPassportTtlSeconds: 300 },
    });
    expect(snapshot.keys.get('dk_billing')).toMatchObject({
      kind: 'derived_key',
      expiresAtSeconds: NOW_SECONDS + 3600,
      client: { clientId: 'billing', grants: new Map([['orders', 'write']]) },
    });
  });

  it('takes the route_id for the resource, and sorts what requests are compared with', async () => {
    const snapshot = await load(
      { at: '/routes/0/resource' },
      { at: '/routes/0/signed_headers', put: ['x-tenant', 'content-type'] },
      { at: '/routes/0/required_context', put: { region: ['eu'], environment: ['production', 'test'] } },
      { at: '/routes/0/freshness_class', put: 'sometimes' },
    );
    expect(snapshot.routes.match('GET', ORIGIN, '/v1/orders/17')).toMatchObject({
      route: {
        resource: 'orders-read',
        signedHeaders: ['content-type', 'x-tenant'],
        requiredContext: [
          { name: 'environment', allowed: new Set(['production', 'test']) },
          { name: 'region', allowed: new Set(['eu']) },
        ],
        freshness: { kind: 'unknown', freshnessClass: 'sometimes' },
      },
    });
  });
});
