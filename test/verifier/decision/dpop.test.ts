/** Decisions on requests with a passport and a DPoP proof. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import Schema from 'typebox/schema';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { createDpopNonces, DPOP_NONCE_SECONDS, type DpopNonces } from '../../../src/protocol/dpop-nonce.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { newJti } from '../../../src/protocol/signing.ts';
import { captureDocument, type DeniedRequest } from '../../../src/verifier/capture/capture-document.ts';
import type { BodyState, RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import {
  AUTH_SITE,
  CLIENT_ISSUER,
  NOW_SECONDS,
  newSigningKey,
  ORIGIN,
} from '../../support/fixtures/bundle-content.ts';
import { type HeaderLookups, headersOf } from '../../support/fixtures/header-lines.ts';
import { type RequestEdits, type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  KEY_ID,
  MAX_STALENESS_SECONDS,
  newSiteKeys,
  type SiteContent,
  SKEW_SECONDS,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { type DpopPlan, signDpop } from '../../support/protocol/dpop-signer.ts';
import { signHttp } from '../../support/protocol/http-signer.ts';

const eventSchema = JSON.parse(
  readFileSync(new URL('../../../docs/reference/schema/decision-event.schema.json', import.meta.url), 'utf8'),
);
const keys = newSiteKeys();
const stranger = newSigningKey();

/** `orders-read` accepts every format, the others DPoP alone. */
function contentWithDpop(): SiteContent {
  const content = siteContent(keys);
  for (const route of content.routes) {
    if (route.route_id === 'orders-read') {
      route.accepted_proofs = ['transcript-v1', 'http-message-signatures', 'dpop'];
      route.unbound = ['route', 'site', 'query'];
    }
    if (route.route_id === 'prices') {
      Object.assign(route, { freshness_class: 'bounded', max_staleness_seconds: MAX_STALENESS_SECONDS });
      route.accepted_proofs = ['dpop'];
      route.unbound = ['route', 'site'];
    }
    if (route.route_id === 'orders-write') {
      route.accepted_proofs = ['dpop'];
      route.unbound = ['route', 'site', 'body'];
    }
    if (route.route_id === 'tenants') {
      route.accepted_proofs = ['dpop'];
      route.unbound = ['route', 'site', 'headers', 'query'];
    }
  }
  return content;
}

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await compileSite(contentWithDpop());
});

interface Change {
  readonly passport?: RequestEdits;
  readonly plan?: Partial<RequestPlan>;
  readonly proof?: Partial<DpopPlan>;
  readonly target?: string;
  readonly method?: string;
  /** In place of the usual headers; undefined removes one. */
  readonly headers?: HeaderLookups;
  readonly scheme?: string;
  readonly body?: BodyState;
  readonly removesProofs?: boolean;
  readonly laterSeconds?: number;
}

type DpopRoute = 'orders-read' | 'orders-write' | 'prices' | 'tenants' | 'future' | 'bearer';

const TARGETS: { readonly [R in DpopRoute]: string } = {
  'orders-read': '/v1/orders/17?fields=id',
  'orders-write': '/v1/orders',
  prices: '/v1/prices',
  tenants: '/v1/tenants',
  future: '/v1/future',
  bearer: '/v1/bearer',
};

function factsOf(route: DpopRoute, change: Change = {}): RequestFacts {
  const holder = change.plan?.holder ?? keys[change.plan?.caller ?? 'billing'];
  const { jws } = signRequest(keys, { caller: 'billing', route, ...change.plan }, change.passport);
  const target = change.target ?? TARGETS[route];
  const [path = ''] = target.split('?');
  const method = change.method ?? (route === 'orders-write' ? 'POST' : 'GET');
  const usual = { key: holder, method, url: `${ORIGIN}${path}`, token: jws, issuedAtSeconds: NOW_SECONDS };
  const dpop = signDpop({ ...usual, ...change.proof });
  const [, scheme = '', authority = ''] = /^([a-z]+):\/\/(.+)$/.exec(ORIGIN) ?? [];
  const { removesProofs = true } = change;
  return {
    method,
    scheme,
    authority,
    target,
    headers: headersOf({ authorization: `${change.scheme ?? 'DPoP'} ${jws}`, dpop, ...change.headers }),
    body: change.body ?? ({ kind: 'none' } as const),
    removesProofs,
  };
}

function decide(route: DpopRoute, change: Change = {}, site = snapshot) {
  const tested = createTestVerifier({
    snapshot: site,
    nowSeconds: NOW_SECONDS + (change.laterSeconds ?? 0),
  });
  return { decision: checkNow(tested.verifier, factsOf(route, change)), ...tested };
}

/** Without reason: each detail has one. */
const detailOf = (route: DpopRoute, change: Change): string =>
  outcomeOf(decide(route, change).decision).replace(/^[a-z_]+\//, '');

const BODY: BodyState = { kind: 'exact', bytes: Buffer.from('{"amount":1}') };

describe('allows', () => {
  it.each<[string, DpopRoute, Change]>([
    ['a request without query and body', 'prices', {}],
    ['a query where the route gives it up', 'orders-read', {}],
    ['a body where the route gives it up', 'orders-write', { body: BODY }],
    ['an unknown body there', 'orders-write', { body: { kind: 'unknown' } }],
    ['a body of no bytes', 'prices', { body: { kind: 'exact', bytes: Buffer.alloc(0) } }],
    ['signed headers where the route gives them up', 'tenants', {}],
    ['a key of ES256', 'prices', { plan: { caller: 'reporting' } }],
    ["a broker's passport", 'prices', { plan: { caller: 'broker', holder: stranger } }],
    ['the scheme in any case', 'prices', { scheme: 'dpop' }],
    ['EdDSA', 'prices', { proof: { header: { alg: 'EdDSA' } } }],
    ['a nonce that was not asked for', 'prices', { proof: { claims: { nonce: 'abc' } } }],
    ['an htu in another case', 'prices', { proof: { url: `HTTPS://API.${ORIGIN.slice(12)}:443/v1/prices` } }],
    ['a proof of a moment ago', 'prices', { laterSeconds: 64 }],
    ['a proof of a clock ahead', 'prices', { laterSeconds: -5 }],
  ])('%s', (_, route, change) => {
    const { decision, events, store } = decide(route, change);
    expect(outcomeOf(decision)).toBe('allowed');
    expect(decision).toMatchObject({ proofFormat: 'dpop' });
    expect(store.claims).toHaveLength(1);
    expect(events).toMatchObject([{ outcome: 'allowed', proof_format: 'dpop' }]);
    expect(events[0]?.transcript_sha256).toBeUndefined();
    expect(events[0]?.dpop_proof_sha256).toMatch(/^[\w-]{43}$/);
    expect(Schema.Errors(eventSchema, JSON.parse(JSON.stringify(events[0])))).toEqual([true, []]);
  });
});

describe('denies', () => {
  const other = { jwk: stranger.publicKey.jwk };
  it.each<[string, DpopRoute, Change, string]>([
    ['the token as a bearer', 'prices', { scheme: 'Bearer' }, 'authorization_scheme 401'],
    ['the token as a passport', 'prices', { scheme: 'Passport' }, 'authorization_scheme 401'],
    ['no token', 'prices', { headers: { authorization: undefined } }, 'authorization_missing 401'],
    ['no proof', 'prices', { headers: { dpop: undefined } }, 'proof_missing 401'],
    ['several proofs', 'prices', { headers: { dpop: { kind: 'ambiguous' } } }, 'proof_malformed 401'],
    ['a scheme without a token', 'prices', { headers: { authorization: 'DPoP' } }, 'passport_malformed 401'],
    [
      'a second scheme',
      'prices',
      { headers: { authorization: 'Bearer x, DPoP y' } },
      'passport_malformed 401',
    ],
    ["another key's proof", 'prices', { proof: { key: stranger } }, 'proof_key 401'],
    ['a swapped key', 'prices', { proof: { header: other } }, 'proof_key 401'],
    ["another key's signature", 'prices', { proof: { signer: stranger } }, 'proof_signature 401'],
    ['another token', 'prices', { proof: { token: 'a.b.c' } }, 'ath 403'],
    ['another method', 'prices', { proof: { method: 'POST' } }, 'method 403'],
    ['the method in another case', 'prices', { proof: { method: 'get' } }, 'method 403'],
    ['another scheme', 'prices', { proof: { url: `http${ORIGIN.slice(5)}/v1/prices` } }, 'scheme 403'],
    ['another host', 'prices', { proof: { url: 'https://evil.example/v1/prices' } }, 'authority 403'],
    ['another port', 'prices', { proof: { url: `${ORIGIN}:8443/v1/prices` } }, 'authority 403'],
    ['another path', 'prices', { proof: { url: `${ORIGIN}/v1/price` } }, 'target 403'],
    ['no path', 'prices', { proof: { url: ORIGIN } }, 'target 403'],
    ['a path that URL parsers fold', 'prices', { proof: { url: `${ORIGIN}/v1/x/../prices` } }, 'target 403'],
    ['a query in htu', 'prices', { proof: { url: `${ORIGIN}/v1/prices?a=1` } }, 'proof_malformed 401'],
    ['a query', 'prices', { target: '/v1/prices?a=1' }, 'query 403'],
    ['an empty query', 'prices', { target: '/v1/prices?' }, 'query 403'],
    ['a body', 'prices', { body: BODY }, 'body 403'],
    ['a body that is on disk', 'prices', { body: { kind: 'hashed', sha256: 'x' } }, 'body 403'],
    ['a body that may be there', 'prices', { body: { kind: 'unknown' } }, 'body_unavailable 403'],
    ['an old proof', 'prices', { laterSeconds: 65 }, 'proof_expired 401'],
    [
      'a proof of the future',
      'prices',
      { proof: { issuedAtSeconds: NOW_SECONDS + 6 } },
      'proof_not_yet_valid 401',
    ],
    ['no ath', 'prices', { proof: { claims: { ath: undefined } } }, 'proof_malformed 401'],
    [
      'a key named by its address',
      'prices',
      { proof: { header: { jku: 'https://x' } } },
      'proof_malformed 401',
    ],
    ["a revoked key's passport", 'prices', { plan: { caller: 'revoked' } }, 'key_revoked 401'],
    ['a passport of a stranger', 'prices', { passport: { passportKey: stranger } }, 'passport_signature 401'],
    [
      'a passport for another audience',
      'prices',
      { passport: { claims: (claims) => Object.assign(claims, { aud: 'urn:x' }) } },
      'audience 403',
    ],
    ['a caller without a grant', 'orders-write', { plan: { caller: 'reporting' } }, 'not_granted 403'],
    [
      'half a transcript beside it',
      'orders-read',
      { headers: { 'x-proofgate-signature': 'x' } },
      'proof_ambiguous 401',
    ],
    ['a passport beside the proof', 'orders-read', { scheme: 'Passport' }, 'proof_ambiguous 401'],
    [
      'two schemes',
      'orders-read',
      { headers: { authorization: 'Passport x, DPoP y' } },
      'proof_ambiguous 401',
    ],
    ['a route of transcripts alone', 'future', {}, 'authorization_scheme 401'],
    ['a point that leaves the proof in', 'prices', { removesProofs: false }, 'authorization_scheme 401'],
    [
      'a passport beside the proof at such a point',
      'orders-read',
      { scheme: 'Passport', removesProofs: false },
      'proof_ambiguous 401',
    ],
  ])('%s', (_, route, change, expected) => {
    const { decision, internalErrors, store } = decide(route, change);
    expect(outcomeOf(decision).replace(/^[a-z_]+\//, '')).toBe(expected);
    expect([store.claims, internalErrors]).toEqual([[], []]);
  });

  it('an HTTP message signature beside it', async () => {
    const options = { key: keys.billing, keyId: KEY_ID.billing, authSite: snapshot.authSite };
    const request = { method: 'GET', url: `${ORIGIN}${TARGETS['orders-read']}`, headers: {} };
    const signed = await signHttp(request, { ...options, createdSeconds: NOW_SECONDS });
    expect(detailOf('orders-read', { headers: signed })).toBe('proof_ambiguous 401');
    expect(detailOf('prices', { headers: signed })).toBe('allowed');
  });

  it('a blocked caller, whose proof it does not read', async () => {
    const content = contentWithDpop();
    content.blocked = [{ issuer: CLIENT_ISSUER, subject: 'client:billing' }];
    const { decision } = decide('prices', { proof: { key: stranger } }, await compileSite(content));
    expect(outcomeOf(decision)).toBe('invalid_request_proof/subject_blocked 401');
  });
});

describe('one use', () => {
  it('counts holder and jti, whatever the format, path or spelling of the signature', () => {
    const jti = newJti();
    const proof = { claims: { jti } };
    const [first, second, third] = [
      decide('prices', { proof }),
      decide('orders-read', { proof }),
      decide('prices', { proof, plan: { caller: 'reporting' } }),
    ].map(({ store }) => store.claims[0]);
    expect(second?.identifier).toBe(first?.identifier);
    expect(third?.identifier).not.toBe(first?.identifier);
    expect(first).toMatchObject({
      holderThumbprint: keys.billing.publicKey.thumbprint,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 60,
    });
    const { facts } = signRequest(
      keys,
      { caller: 'billing', route: 'orders-read' },
      { transcript: (transcript) => Object.assign(transcript, { jti }) },
    );
    const { store, verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
    expect(outcomeOf(checkNow(verifier, { ...facts, removesProofs: true }))).toBe('allowed');
    expect(store.claims[0]?.identifier).toBe(first?.identifier);
  });

  it('lets no second request begin a body with the same proof', () => {
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
    const facts = factsOf('orders-write', { body: { kind: 'unknown' } });
    expect([outcomeOf(verifier.awaitBody(facts)), outcomeOf(verifier.awaitBody(facts))]).toEqual([
      'awaited',
      'jti_replay 403',
    ]);
  });

  it('never signs the text of another format: a JWS begins with ey', () => {
    expect(factsOf('prices').headers.values('dpop')).toEqual([expect.stringMatching(/^ey/)]);
    const dpop = Buffer.from(
      String(factsOf('prices').headers.values('dpop')[0]).split('.').slice(0, 2).join('.'),
    );
    const transcript = dpop.toString('base64url');
    const signature = signMessage('Ed25519', keys.billing.privateKey, dpop).toString('base64url');
    const headers = {
      'x-proofgate-transcript': transcript,
      'x-proofgate-signature': signature,
      dpop: undefined,
    };
    expect(detailOf('orders-read', { scheme: 'Passport', headers })).toBe('proof_malformed 401');
  });
});

describe('nonces', () => {
  const own = createDpopNonces(AUTH_SITE, [Buffer.alloc(32, 1)]);
  const others = createDpopNonces(AUTH_SITE, [Buffer.alloc(32, 2)]);
  let site: Snapshot;
  beforeAll(async () => {
    const content = contentWithDpop();
    for (const route of content.routes) if (route.route_id === 'prices') route.dpop_nonce = 'required';
    site = await compileSite(content);
  });
  const decideWith = (nonce: unknown, change: Change = {}, dpopNonces?: DpopNonces) => {
    const proof = { ...change.proof, claims: { nonce, ...change.proof?.claims } };
    const tested = createTestVerifier({ snapshot: site, nowSeconds: NOW_SECONDS, dpopNonces });
    return { decision: checkNow(tested.verifier, factsOf('prices', { ...change, proof })), ...tested };
  };
  const old = own.issue(NOW_SECONDS - DPOP_NONCE_SECONDS);

  it('allows a proof with one, and one of a clock ahead', () => {
    for (const seconds of [NOW_SECONDS, NOW_SECONDS - DPOP_NONCE_SECONDS + 1, NOW_SECONDS + SKEW_SECONDS]) {
      expect(outcomeOf(decideWith(own.issue(seconds), {}, own).decision)).toBe('allowed');
    }
  });

  it.each<[string, unknown, Change, DpopNonces | undefined]>([
    ['no nonce', undefined, {}, own],
    ['an old one', old, {}, own],
    ['one of the future', own.issue(NOW_SECONDS + SKEW_SECONDS + 1), {}, own],
    ["one of another verifier's key", others.issue(NOW_SECONDS), {}, own],
    ['one of another site', createDpopNonces('shop-us', [Buffer.alloc(32, 1)]).issue(NOW_SECONDS), {}, own],
    ['an invented one', 'A'.repeat(30), {}, own],
    ['a nonce where the verifier has no key', own.issue(NOW_SECONDS), {}, undefined],
    ['an old one in an old proof', old, { proof: { issuedAtSeconds: NOW_SECONDS - 300 } }, own],
  ])('denies %s, and gives a new one', (_, nonce, change, dpopNonces) => {
    const { decision, store } = decideWith(nonce, change, dpopNonces);
    expect(outcomeOf(decision)).toBe('invalid_request_proof/dpop_nonce 401');
    expect(store.claims).toEqual([]);
    expect(decision).toMatchObject({
      challenge: 'DPoP error="use_dpop_nonce", algs="ES256 Ed25519 EdDSA"',
      dpopNonce: dpopNonces?.issue(NOW_SECONDS),
    });
  });

  it('gives none to a caller without the key', () => {
    const { decision } = decideWith(undefined, { proof: { signer: stranger } }, own);
    expect(outcomeOf(decision)).toBe('invalid_request_proof/proof_signature 401');
    expect(decision).not.toHaveProperty('dpopNonce');
  });

  it('asks nothing of another route', () => {
    const { verifier } = createTestVerifier({ snapshot: site, nowSeconds: NOW_SECONDS, dpopNonces: own });
    expect(outcomeOf(checkNow(verifier, factsOf('orders-read')))).toBe('allowed');
  });
});

describe('WWW-Authenticate', () => {
  const challengeOf = (route: DpopRoute, change: Change) => {
    const { decision } = decide(route, change);
    return decision.kind === 'denied' ? decision.challenge : 'not denied';
  };
  it.each<[string, DpopRoute, Change, string | undefined]>([
    [
      'no token',
      'prices',
      { headers: { authorization: undefined, dpop: undefined } },
      'DPoP algs="ES256 Ed25519 EdDSA"',
    ],
    [
      'no token where passports count too',
      'orders-read',
      { headers: { authorization: undefined, dpop: undefined } },
      'Passport, DPoP algs="ES256 Ed25519 EdDSA"',
    ],
    [
      'a wrong proof',
      'prices',
      { proof: { key: stranger } },
      'DPoP error="invalid_dpop_proof", algs="ES256 Ed25519 EdDSA"',
    ],
    [
      'a wrong token',
      'prices',
      { plan: { caller: 'revoked' } },
      'DPoP error="invalid_token", algs="ES256 Ed25519 EdDSA"',
    ],
    ['a wrong target', 'prices', { proof: { method: 'POST' } }, undefined],
    ['a route without DPoP', 'future', {}, undefined],
    ['a point without DPoP', 'prices', { removesProofs: false }, undefined],
  ])('of %s', (_, route, change, expected) => {
    expect(challengeOf(route, change)).toBe(expected);
  });
});

describe('an observed request', () => {
  const observations = { observes: () => true, observesUnmatched: () => true };
  const observe = (change: Change, site = snapshot, route: DpopRoute = 'prices') => {
    const { verifier } = createTestVerifier({ snapshot: site, nowSeconds: NOW_SECONDS, observations });
    return checkNow(verifier, factsOf(route, change));
  };
  const WRONG = { proof: { key: stranger } };

  it.each<[string, DpopRoute, Change]>([
    ['where DPoP counts', 'prices', WRONG],
    ['where transcripts alone count', 'future', {}],
    ['that no route matches', 'prices', { target: '/v2/new' }],
  ])('%s loses proof and token, or is denied', async (_, route, change) => {
    const content = contentWithDpop();
    for (const entry of content.routes) if (entry.route_id === 'future') entry.freshness_class = 'realtime';
    const site = await compileSite(content);
    expect(observe(change, site, route)).toMatchObject({
      kind: 'observed',
      unusedProofs: ['dpop'],
      removesAuthorization: true,
    });
    expect(observe({ ...change, removesProofs: false }, site, route)).toMatchObject({ kind: 'denied' });
  });

  it('keeps both at a site without DPoP', async () => {
    const site = await compileSite(siteContent(keys));
    const headers = { authorization: 'DPoP of.the.application' };
    for (const removesProofs of [true, false]) {
      const kept = { kind: 'observed', unusedProofs: [] };
      expect(observe({ removesProofs, headers }, site)).toMatchObject({
        ...kept,
        removesAuthorization: false,
      });
      // With a passport.
      expect(observe({ removesProofs }, site)).toMatchObject({ ...kept, removesAuthorization: true });
    }
  });
});

describe('the explanation of a denial', () => {
  function capturedText(change: Change): string {
    const captured: DeniedRequest[] = [];
    const onDenied = (denied: DeniedRequest) => captured.push(denied);
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS, onDenied });
    checkNow(verifier, factsOf('prices', change));
    const [denied] = captured;
    if (denied === undefined) throw new Error('not denied');
    const options = { realtimeStalenessSeconds: 10, keepsCredentials: false };
    return JSON.parse(captureDocument(denied, options)).text.join('\n');
  }

  it('compares what the proof states, without what is secret', () => {
    const jti = newJti();
    const text = capturedText({ proof: { url: `${ORIGIN}/v1/orders`, claims: { jti } } });
    expect(text).toContain('request_binding_mismatch (target)');
    expect(text).toContain('DPoP proof of its holder key');
    expect(text).toMatch(
      /DPoP proof: 4 of 5 lines equal.*\n +- target=\/v1\/\[6 characters\]\n +\+ target=\/v1\/prices/,
    );
    expect(text).not.toContain(jti);
  });

  it('says that the proof is of another key', () => {
    const text = capturedText({ proof: { key: stranger } });
    expect(text).toContain('DPoP proof of another key than its holder key');
    expect(text).not.toContain(stranger.publicKey.jwk.x);
  });
});
