/** Decisions on requests with an access token of an OAuth authorization server and a DPoP proof. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import Schema from 'typebox/schema';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { CountedDecision } from '../../../src/bundle/format/decision-summary.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { newJti, type SigningKey } from '../../../src/protocol/signing.ts';
import { captureDocument, type DeniedRequest } from '../../../src/verifier/capture/capture-document.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import {
  BROKER_ISSUER,
  NOW_SECONDS,
  newSigningKey,
  ORIGIN,
  TRUST_DOMAIN,
} from '../../support/fixtures/bundle-content.ts';
import { linesFacts } from '../../support/fixtures/header-lines.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  KEY_ID,
  MAX_STALENESS_SECONDS,
  newSiteKeys,
  type SiteContent,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { type IssuerSigner, makeSigner, signCompact, signHmac } from '../../support/fixtures/token-signer.ts';
import { signDpop } from '../../support/protocol/dpop-signer.ts';

const eventSchema = JSON.parse(
  readFileSync(new URL('../../../docs/reference/schema/decision-event.schema.json', import.meta.url), 'utf8'),
);
const ISSUER = 'https://login.shop.example/realms/shop';
const OTHER_ISSUER = 'https://other.shop.example';
const keys = newSiteKeys();
const holder = newSigningKey('ES256');
const stranger = newSigningKey();
const signers = {
  RS256: makeSigner('RS256'),
  PS256: makeSigner('PS256'),
  ES256: makeSigner('ES256'),
  Ed25519: makeSigner('Ed25519'),
};
const otherServer = makeSigner('RS256');

type Server = NonNullable<SiteContent['oauth_issuers']>[number];

function keyEntry({ algorithm: alg, kid, publicKey }: IssuerSigner): Server['keys'][number] {
  return { kid, alg, jwk: publicKey.export({ format: 'jwk' }) as Server['keys'][number]['jwk'] };
}

const SERVER: Server = {
  issuer: ISSUER,
  trust_domain: TRUST_DOMAIN,
  subject_claim: 'client_id',
  service_marker: { claim: 'gty', value: 'client-credentials' },
  context_claims: ['team', 'scope'],
  keys: Object.values(signers).map(keyEntry),
};

/** Routes that take DPoP proofs: `prices` of this server's callers, `orders-read` with context, `prices-capped` is realtime. */
function contentWith(server: Partial<Server> = {}): SiteContent {
  const content = siteContent(keys);
  content.oauth_issuers = [
    { ...SERVER, ...server },
    { issuer: OTHER_ISSUER, trust_domain: TRUST_DOMAIN, keys: [keyEntry(otherServer)] },
  ];
  for (const route of content.routes) {
    if (!['prices', 'orders-read', 'prices-capped'].includes(route.route_id)) continue;
    route.accepted_proofs = ['dpop', 'transcript-v1'];
    route.unbound = ['route', 'site'];
    if (route.route_id === 'orders-read')
      route.required_context = { scope: ['orders:read'], team: ['payments'] };
    if (route.route_id === 'prices')
      Object.assign(route, { freshness_class: 'bounded', max_staleness_seconds: MAX_STALENESS_SECONDS });
  }
  for (const { allowed_sources } of content.route_sources) {
    const rule = { issuer: ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' } as const;
    allowed_sources.push(
      { ...rule, subject_exact: 'client_id:billing' },
      { ...rule, issuer: OTHER_ISSUER, subject_prefix: 'sub:' },
    );
  }
  return content;
}

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await compileSite(contentWith());
});

type Members = Readonly<Record<string, unknown>>;

interface Change {
  readonly signer?: IssuerSigner;
  readonly header?: Members;
  readonly claims?: Members;
  readonly token?: string;
  readonly key?: SigningKey;
  readonly target?: string;
  readonly scheme?: string;
  readonly laterSeconds?: number;
}

function tokenOf({ claims, header, signer = signers.RS256 }: Change): string {
  return signCompact(
    { typ: 'at+jwt', alg: signer.algorithm, kid: signer.kid, ...header },
    {
      ...{ iss: ISSUER, aud: [ORIGIN, 'account'], iat: NOW_SECONDS, exp: NOW_SECONDS + 300, jti: 'token-1' },
      ...{ sub: 'user-1', client_id: 'billing', gty: 'client-credentials' },
      ...{ team: 'payments', scope: 'profile orders:read', name: 'Zoë' },
      cnf: { jkt: holder.publicKey.thumbprint },
      ...claims,
    },
    signer,
  );
}

function factsOf(change: Change): RequestFacts {
  const { key = holder, scheme = 'DPoP', target = '/v1/prices' } = change;
  const token = change.token ?? tokenOf(change);
  const proof = { key, method: 'GET', url: `${ORIGIN}${target}`, token, issuedAtSeconds: NOW_SECONDS };
  return linesFacts('GET', `${ORIGIN}${target}`, {
    authorization: `${scheme} ${token}`,
    dpop: signDpop(proof),
  });
}

function decide(change: Change, site = snapshot) {
  const nowSeconds = NOW_SECONDS + (change.laterSeconds ?? 0);
  const tested = createTestVerifier({ snapshot: site, nowSeconds });
  return { decision: checkNow(tested.verifier, factsOf(change)), ...tested };
}

const ORDERS = { target: '/v1/orders/17' };

describe('allows', () => {
  it.each<[string, Change]>([
    ...Object.entries(signers).map(([name, signer]): [string, Change] => [name, { signer }]),
    ['the long name of the type', { header: { typ: 'application/at+jwt' } }],
    ['one audience', { claims: { aud: ORIGIN } }],
    ['no jti', { claims: { jti: undefined } }],
    ['one of the scopes, and the team', ORDERS],
    ['a key of Ed25519', { key: stranger, claims: { cnf: { jkt: stranger.publicKey.thumbprint } } }],
  ])('%s', (_, change) => {
    const { decision, events, store } = decide(change);
    expect(outcomeOf(decision)).toBe('allowed');
    expect(decision).toMatchObject({
      proofFormat: 'dpop',
      caller: { issuer: ISSUER, subject: 'client_id:billing', keyBinding: 'software' },
    });
    expect(store.claims).toHaveLength(1);
    expect(Schema.Errors(eventSchema, JSON.parse(JSON.stringify(events[0])))).toEqual([true, []]);
  });

  it('a passport as before', () => {
    const { jws } = signRequest(keys, { caller: 'billing', route: 'prices' });
    expect(outcomeOf(decide({ token: jws, key: keys.billing }).decision)).toBe('allowed');
  });
});

it.each<[string, Change, boolean]>([
  ['an unknown key', { header: { kid: 'rotated-in' } }, true],
  [
    'an unknown key of an issuer that the bundle does not have',
    { claims: { iss: 'https://evil.example' } },
    false,
  ],
  ["a broker's issuer and kid", { claims: { iss: BROKER_ISSUER }, header: { kid: KEY_ID.broker } }, false],
  ['a forged signature', { signer: { ...makeSigner('RS256'), kid: signers.RS256.kid } }, false],
  [
    'a caller that the route does not accept',
    { header: { kid: 'x' }, claims: { client_id: 'other' } },
    false,
  ],
  ['a known key', {}, false],
])('names the unknown key for Control: %s', (_, change, isNamed) => {
  const decided: CountedDecision[] = [];
  const { verifier } = createTestVerifier({ snapshot, onDecided: (decision) => decided.push(decision) });
  checkNow(verifier, factsOf(change));
  const unknownKey = isNamed ? { issuer: ISSUER, kid: 'rotated-in' } : undefined;
  expect(decided.map((decision) => decision.unknownKey)).toEqual([unknownKey]);
});

describe('denies', () => {
  const publicPem = signers.RS256.publicKey.export({ type: 'spki', format: 'pem' });
  const fakeOf = (alg: 'RS256' | 'PS256'): IssuerSigner => ({ ...makeSigner(alg), kid: signers[alg].kid });
  it.each<[string, Change, string]>([
    ['the token as a bearer', { scheme: 'Bearer' }, 'authorization_scheme 401'],
    ['the token as a passport', { scheme: 'Passport' }, 'proof_ambiguous 401'],
    ["another key's proof", { key: stranger }, 'proof_key 401'],
    ['a token that is bound to no key', { claims: { cnf: undefined } }, 'passport_malformed 401'],
    [
      'a token that is bound in two ways',
      { claims: { cnf: { jkt: holder.publicKey.thumbprint, 'x5t#S256': 'A'.repeat(43) } } },
      'passport_malformed 401',
    ],
    ['a forged signature', { signer: fakeOf('RS256') }, 'passport_signature 401'],
    ['another algorithm of the key', { header: { alg: 'PS256' } }, 'passport_signature 401'],
    ['a PS256 key for RS256', { signer: { ...signers.PS256, algorithm: 'RS256' } }, 'passport_signature 401'],
    [
      'the public key as a secret',
      {
        token: signHmac({ typ: 'at+jwt', alg: 'HS256', kid: signers.RS256.kid }, { iss: ISSUER }, publicPem),
      },
      'passport_malformed 401',
    ],
    ['no algorithm', { header: { alg: 'none' } }, 'passport_malformed 401'],
    ['an address of keys', { header: { jku: 'https://evil.example' } }, 'passport_malformed 401'],
    ['a key in the header', { header: { jwk: stranger.publicKey.jwk } }, 'passport_malformed 401'],
    ['an ID token', { header: { typ: 'JWT' }, claims: { nonce: 'x' } }, 'passport_malformed 401'],
    ['a type that the server may not write', { header: { typ: 'JWT' } }, 'claims_not_allowed 401'],
    ['an unknown key', { header: { kid: 'nobody' } }, 'key_unknown 401'],
    ["another server's key", { signer: otherServer }, 'key_unknown 401'],
    ["another server's token for our kid", { claims: { iss: OTHER_ISSUER } }, 'key_unknown 401'],
    ['an unknown issuer', { claims: { iss: 'https://evil.example' } }, 'key_unknown 401'],
    [
      "a broker's issuer and kid",
      { claims: { iss: BROKER_ISSUER }, header: { kid: KEY_ID.broker } },
      'key_unknown 401',
    ],
    ['the key of a client', { header: { kid: KEY_ID.billing } }, 'key_unknown 401'],
    ['a user’s token', { claims: { gty: 'password' } }, 'claims_not_allowed 401'],
    ['no marker', { claims: { gty: undefined } }, 'claims_not_allowed 401'],
    ['no subject', { claims: { client_id: undefined } }, 'claims_not_allowed 401'],
    ['a subject of other characters', { claims: { client_id: 'Zoë' } }, 'claims_not_allowed 401'],
    ['a subject that is a list', { claims: { client_id: ['billing'] } }, 'claims_not_allowed 401'],
    ['another subject', { claims: { client_id: 'reporting' } }, 'source_subject_mismatch 403'],
    [
      'the subject of another claim',
      { claims: { client_id: 'x', sub: 'client_id:billing' } },
      'source_subject_mismatch 403',
    ],
    ['another audience', { claims: { aud: 'account' } }, 'audience 403'],
    ['no audience', { claims: { aud: [] } }, 'passport_malformed 401'],
    ['a long life', { claims: { exp: NOW_SECONDS + 301 } }, 'passport_ttl 401'],
    ['no life', { claims: { exp: NOW_SECONDS } }, 'passport_ttl 401'],
    ['an old token', { claims: { iat: NOW_SECONDS - 306, exp: NOW_SECONDS - 6 } }, 'passport_expired 401'],
    [
      'a token of the future',
      { claims: { iat: NOW_SECONDS + 6, exp: NOW_SECONDS + 60 } },
      'passport_not_yet_valid 401',
    ],
    ['nbf', { claims: { nbf: NOW_SECONDS + 6 } }, 'passport_not_yet_valid 401'],
    ['another scope', { ...ORDERS, claims: { scope: 'orders:readall' } }, 'scope 403'],
    ['no scope', { ...ORDERS, claims: { scope: '' } }, 'scope 403'],
    ['a scope in another claim', { ...ORDERS, claims: { team: 'payments orders:read' } }, 'team 403'],
    ['a realtime route', { target: '/v1/prices/capped' }, 'token_not_accepted 401'],
    ['a route of transcripts alone', { target: '/v1/partners' }, 'origin 403'],
  ])('%s', (_, change, expected) => {
    const { decision, internalErrors, store } = decide(change);
    expect(
      outcomeOf(decision)
        .replace(/^[a-z_]+\//, '')
        .replace(/^([a-z_]+_mismatch) /, '$1 '),
    ).toBe(expected);
    expect([store.claims, internalErrors]).toEqual([[], []]);
  });

  it('a stolen key of the server for passports, and a broker’s for access tokens', () => {
    const { jws } = signRequest(
      keys,
      { caller: 'broker', route: 'prices' },
      {
        joseHeader: (header) => Object.assign(header, { kid: signers.Ed25519.kid }),
      },
    );
    expect(outcomeOf(decide({ token: jws, key: keys.broker }).decision)).toContain('key_unknown');
    const broker = { ...signers.Ed25519, kid: KEY_ID.broker, privateKey: keys.broker.privateKey };
    expect(outcomeOf(decide({ signer: broker }).decision)).toContain('key_unknown');
  });

  it('tokens of before not_before, and of a blocked subject', async () => {
    const ended = await compileSite(contentWith({ not_before: formatTime(NOW_SECONDS + 1) }));
    expect(outcomeOf(decide({}, ended).decision)).toBe('invalid_request_proof/passport_expired 401');
    const content = contentWith();
    content.blocked = [{ issuer: ISSUER, subject: 'client_id:billing' }];
    expect(outcomeOf(decide({}, await compileSite(content)).decision)).toBe(
      'invalid_request_proof/subject_blocked 401',
    );
  });

  it('no realtime route that accepts the lifetime of a token', async () => {
    const content = contentWith();
    for (const route of content.routes)
      if (route.route_id === 'prices-capped') route.oauth_revocation = 'token_lifetime';
    const { decision } = decide({ target: '/v1/prices/capped' }, await compileSite(content));
    expect(outcomeOf(decision)).toBe('allowed');
  });

  it('a second use of a token that was verified, with another key, proof or bundle', async () => {
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
    const token = tokenOf({});
    expect(outcomeOf(checkNow(verifier, factsOf({ token })))).toBe('allowed');
    expect(outcomeOf(checkNow(verifier, factsOf({ token })))).toBe('allowed');
    expect(outcomeOf(checkNow(verifier, factsOf({ token, key: stranger })))).toContain('proof_key');
    const changed = `${token.slice(0, -4)}AAAA`;
    expect(outcomeOf(checkNow(verifier, factsOf({ token: changed })))).toContain('passport_signature');
  });
});

describe('a connection that outlives its request', () => {
  it('ends with the key, and with tokens of its time', async () => {
    let current = snapshot;
    const { verifier } = createTestVerifier({ currentSnapshot: () => current, nowSeconds: NOW_SECONDS });
    const decision = checkNow(verifier, factsOf({}));
    if (decision.kind !== 'allowed') throw new Error('not allowed');
    expect(verifier.hasValidKey(decision)).toBe(true);
    const others = Object.values(signers).slice(1).map(keyEntry);
    for (const change of [{ keys: others }, { not_before: formatTime(NOW_SECONDS + 1) }]) {
      current = await compileSite(contentWith(change));
      expect(verifier.hasValidKey(decision)).toBe(false);
    }
  });
});

it('is explained without its claims', () => {
  const captured: DeniedRequest[] = [];
  const onDenied = (denied: DeniedRequest) => captured.push(denied);
  const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS, onDenied });
  checkNow(verifier, factsOf({ key: stranger, claims: { email: 'zoe@shop.example' } }));
  const [denied] = captured;
  if (denied === undefined) throw new Error('not denied');
  const document = captureDocument(denied, { realtimeStalenessSeconds: 10, keepsCredentials: false });
  const text = JSON.parse(document).text.join('\n');
  expect(text).toContain('access token of https://login.shop.example/realms/shop');
  expect(text).toContain('DPoP proof of another key than its holder key');
  expect(text).toContain(`key ${signers.RS256.kid}: oauth_key`);
  expect(document).not.toContain('zoe@');
});

it('quota and replay count the token’s issuer and subject, and its holder key', () => {
  const jti = newJti();
  const { store } = decide({ claims: { jti } });
  expect(store.claims[0]).toMatchObject({ holderThumbprint: holder.publicKey.thumbprint });
});
