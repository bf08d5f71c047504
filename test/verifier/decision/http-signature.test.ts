/** Decisions on requests that a derived key signs itself, by the npm package http-message-signatures. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import Schema from 'typebox/schema';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { HTTP_SIGNATURE_FIELDS } from '../../../src/protocol/wire-names.ts';
import { captureDocument, type DeniedRequest } from '../../../src/verifier/capture/capture-document.ts';
import { explainRequest } from '../../../src/verifier/decision/explain/explain.ts';
import type { BodyState, RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { type HeaderLookups, headersOf } from '../../support/fixtures/header-lines.ts';
import {
  compileHttpSite,
  httpSiteContent,
  httpSiteKeys,
} from '../../support/fixtures/http-signature-site.ts';
import { signRequest, type WireRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, type SiteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import {
  type HttpSigningOptions,
  newNonce,
  type PlainRequest,
  signHttp,
} from '../../support/protocol/http-signer.ts';

const eventSchema = JSON.parse(
  readFileSync(new URL('../../../docs/reference/schema/decision-event.schema.json', import.meta.url), 'utf8'),
);
const keys = httpSiteKeys;
const BODY = Buffer.from('{"amount":1}');
const READ = { method: 'GET', url: `${ORIGIN}/v1/orders/17?fields=id`, headers: {} };
const WRITE = {
  method: 'POST',
  url: `${ORIGIN}/v1/orders`,
  headers: { 'content-type': 'application/json' },
  body: BODY,
};
const UPLOAD = { method: 'PUT', url: `${ORIGIN}/v1/uploads/a`, headers: {} };
const TENANT = { method: 'GET', url: `${ORIGIN}/v1/tenants`, headers: { 'x-tenant': 'acme', accept: 'a/b' } };
const BEARER = { method: 'GET', url: `${ORIGIN}/v1/bearer`, headers: { authorization: 'Bearer app' } };
let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await compileHttpSite();
});

interface Change {
  readonly sign?: Partial<HttpSigningOptions>;
  /** The request as it arrives; default: as it was signed. */
  readonly arrived?: Partial<PlainRequest>;
  /** Headers as they arrive, beside or in place of the signed ones; undefined removes one. */
  readonly headers?: HeaderLookups;
  /** A change of `Signature-Input` after signing. */
  readonly edit?: { readonly from: string | RegExp; readonly to: string };
  readonly state?: BodyState;
  readonly isUnaware?: true;
  /** Time of the decision, seconds after the signature. */
  readonly laterSeconds?: number;
}

async function factsOf(request: PlainRequest, change: Change = {}): Promise<RequestFacts> {
  const key = keys.billing;
  const options = { key, keyId: KEY_ID.billing, authSite: AUTH_SITE, createdSeconds: NOW_SECONDS };
  const signed = await signHttp(request, { ...options, ...change.sign });
  const { method, url, body } = { ...request, ...change.arrived };
  const [, scheme = '', authority = '', target = ''] = /^([a-z]+):\/\/([^/]+)(.*)$/.exec(url) ?? [];
  const { 'signature-input': input = '' } = signed;
  const edited = change.edit === undefined ? input : input.replace(change.edit.from, change.edit.to);
  expect(edited === input).toBe(change.edit === undefined);
  const headers = headersOf({ ...signed, 'signature-input': edited, ...change.headers });
  const state = change.state ?? (body === undefined ? { kind: 'none' } : { kind: 'exact', bytes: body });
  const facts = { method, scheme, authority, target, headers, body: state } as const;
  return change.isUnaware ? facts : { ...facts, removesProofs: true };
}

async function decide(request: PlainRequest, change: Change = {}, site = snapshot) {
  const { laterSeconds = 0 } = change;
  const tested = createTestVerifier({ snapshot: site, nowSeconds: NOW_SECONDS + laterSeconds });
  const facts = await factsOf(request, change);
  return { decision: checkNow(tested.verifier, facts), facts, ...tested };
}

describe('allows', () => {
  it.each<[string, PlainRequest, Change]>([
    ['a request without a body', READ, {}],
    ['a body', WRITE, {}],
    ['a body of which only the hash is known', WRITE, { state: hashed(BODY) }],
    ['an unbound body', UPLOAD, { state: { kind: 'unknown' } }],
    ['signed headers', TENANT, { sign: { fields: ['@method', '@target-uri', 'x-tenant', 'accept'] } }],
    [
      'the parts of the target',
      READ,
      { sign: { fields: ['@query', '@path', '@authority', '@scheme', '@method'] } },
    ],
    ['the digest of an empty body', { ...READ, body: Buffer.alloc(0) }, {}],
    [
      'the name of the algorithm',
      READ,
      { sign: { params: ['created', 'expires', 'nonce', 'keyid', 'tag', 'alg'] } },
    ],
    [
      "the application's Authorization",
      BEARER,
      { sign: { fields: ['@method', '@target-uri', 'authorization'] } },
    ],
    [
      'the route',
      { ...READ, headers: { 'x-proofgate-route': 'orders-read' } },
      { sign: { fields: ['@method', '@target-uri', 'x-proofgate-route'] } },
    ],
    ['a key of ES256', READ, { sign: { key: keys.reporting, keyId: KEY_ID.reporting } }],
  ])('%s', async (_, request, change) => {
    const { decision, events, store } = await decide(request, change);
    expect(outcomeOf(decision)).toBe('allowed');
    expect(store.claims).toHaveLength(1);
    expect(events).toMatchObject([{ outcome: 'allowed', proof_format: 'http-message-signatures' }]);
    expect(Schema.Errors(eventSchema, JSON.parse(JSON.stringify(events[0])))).toEqual([true, []]);
  });
});

const edited = (from: string | RegExp, to: string): Change => ({ edit: { from, to } });

function hashed(body: Buffer): BodyState {
  return { kind: 'hashed', sha256: hash('sha256', body, 'base64url') };
}

describe('denies', () => {
  const without = (name: string) => ({
    params: ['created', 'expires', 'nonce', 'keyid', 'tag'].filter((p) => p !== name),
  });
  const covering = (...fields: string[]) => ({ sign: { fields } });
  it.each<[string, PlainRequest, Change, string]>([
    ['another method', { ...READ, method: 'DELETE' }, { arrived: { method: 'GET' } }, 'proof_signature 401'],
    ['another path', READ, { arrived: { url: `${ORIGIN}/v1/orders/18?fields=id` } }, 'proof_signature 401'],
    ['another query', READ, { arrived: { url: `${ORIGIN}/v1/orders/17?fields=all` } }, 'proof_signature 401'],
    ['no query', READ, { arrived: { url: `${ORIGIN}/v1/orders/17` } }, 'proof_signature 401'],
    [
      'another origin',
      READ,
      { arrived: { url: READ.url.replace('api', 'partners').replace('example/', 'example:8443/') } },
      'proof_signature 401',
    ],
    ['another created', READ, edited(/created=\d+/, `created=${NOW_SECONDS - 1}`), 'proof_signature 401'],
    ['another end', READ, edited(/expires=\d+/, `expires=${NOW_SECONDS + 61}`), 'proof_signature 401'],
    ['another nonce', READ, edited(/nonce="[^"]+"/, `nonce="${newNonce()}"`), 'proof_signature 401'],
    ['another key', READ, edited(KEY_ID.billing, KEY_ID.reporting), 'proof_signature 401'],
    [
      'a parameter among the components',
      READ,
      edited('"@method" ', '"@method" "created" '),
      'header.created 403',
    ],
    ['fewer components', READ, edited('"@method" ', ''), 'proof_signature 401'],
    [
      'another signature',
      READ,
      { headers: { signature: `sig=:${Buffer.alloc(64).toString('base64')}:` } },
      'proof_signature 401',
    ],
    [
      'the algorithm of another key',
      READ,
      { sign: { params: ['created', 'expires', 'nonce', 'keyid', 'tag', 'alg'], alg: 'ecdsa-p256-sha256' } },
      'proof_signature 401',
    ],
    [
      'a changed signed header',
      TENANT,
      { ...covering('@method', '@target-uri', 'x-tenant', 'accept'), headers: { 'x-tenant': 'evil' } },
      'proof_signature 401',
    ],
    [
      'a removed signed header',
      TENANT,
      { ...covering('@method', '@target-uri', 'x-tenant', 'accept'), headers: { 'x-tenant': undefined } },
      'header.x-tenant 403',
    ],
    [
      'a repeated signed header',
      TENANT,
      {
        ...covering('@method', '@target-uri', 'x-tenant', 'accept'),
        headers: { 'x-tenant': { kind: 'ambiguous' } },
      },
      'header.x-tenant 403',
    ],
    ['an uncovered header', TENANT, covering('@method', '@target-uri', 'accept'), 'component.x-tenant 403'],
    ['an uncovered method', READ, covering('@target-uri'), 'component.@method 403'],
    ['an uncovered target', READ, covering('@method'), 'component.@target-uri 403'],
    [
      'an uncovered query',
      READ,
      covering('@method', '@scheme', '@authority', '@path'),
      'component.@target-uri 403',
    ],
    [
      'an uncovered body',
      WRITE,
      covering('@method', '@target-uri', 'content-type'),
      'component.content-digest 403',
    ],
    [
      'an uncovered type',
      WRITE,
      covering('@method', '@target-uri', 'content-digest'),
      'component.content-type 403',
    ],
    ['a body for none', READ, { arrived: { body: BODY } }, 'component.content-digest 403'],
    ['another body', WRITE, { arrived: { body: Buffer.from('{"amount":2}') } }, 'content-digest 403'],
    ['no body for one', WRITE, { state: { kind: 'none' } }, 'content-digest 403'],
    ['another hash', WRITE, { state: hashed(Buffer.from('x')) }, 'content-digest 403'],
    ['an unknown body', WRITE, { state: { kind: 'unknown' } }, 'body_unavailable 403'],
    ['a body that may be there', READ, { state: { kind: 'unknown' } }, 'body_unavailable 403'],
    ['a digest that no step compares', { ...UPLOAD, body: BODY }, {}, 'content-digest 403'],
    [
      'a bare ?',
      { ...READ, url: `${ORIGIN}/v1/orders/17?` },
      covering('@method', '@scheme', '@authority', '@path', '@query'),
      'target 403',
    ],
    [
      'the name of another route',
      { ...READ, headers: { 'x-proofgate-route': 'prices' } },
      covering('@method', '@target-uri', 'x-proofgate-route'),
      'route-id 403',
    ],
    ['another site', READ, { sign: { authSite: 'shop-us-1' } }, 'authorization_missing 401'],
    [
      'another site, where only signatures count',
      WRITE,
      { sign: { authSite: 'shop-us-1' } },
      'proof_missing 401',
    ],
    [
      'no signature',
      WRITE,
      { headers: { 'signature-input': undefined, signature: undefined } },
      'proof_missing 401',
    ],
    ['no Signature', WRITE, { headers: { signature: undefined } }, 'proof_malformed 401'],
    ['no nonce', READ, { sign: without('nonce') }, 'proof_malformed 401'],
    ['no end', READ, { sign: without('expires') }, 'proof_malformed 401'],
    ['an unknown key', READ, { sign: { keyId: 'dk_nobody' } }, 'key_unknown 401'],
    ['a thumbprint', READ, { sign: { keyId: keys.billing.publicKey.thumbprint } }, 'key_unknown 401'],
    ["a broker's key", READ, { sign: { key: keys.broker, keyId: KEY_ID.broker } }, 'key_unknown 401'],
    ['a revoked key', READ, { sign: { key: keys.revoked, keyId: KEY_ID.revoked } }, 'key_revoked 401'],
    [
      'a key without a grant',
      WRITE,
      { sign: { key: keys.reporting, keyId: KEY_ID.reporting } },
      'not_granted 403',
    ],
    ['a long life', READ, { sign: { ttlSeconds: 301 } }, 'proof_ttl 401'],
    ['no life', READ, { sign: { ttlSeconds: 0 } }, 'proof_ttl 401'],
    ['a signature of the future', READ, { laterSeconds: -6 }, 'proof_not_yet_valid 401'],
    ['an old signature', READ, { laterSeconds: 65 }, 'proof_expired 401'],
    [
      'a malformed passport',
      READ,
      { headers: { authorization: 'Passport a.b.c' } },
      'passport_malformed 401',
    ],
    [
      'another scheme beside it',
      READ,
      { headers: { authorization: 'Bearer x' } },
      'authorization_scheme 401',
    ],
    [
      'half a transcript beside it',
      READ,
      { headers: { 'x-proofgate-signature': 'x' } },
      'proof_ambiguous 401',
    ],
    [
      'a malformed passport in its own header',
      BEARER,
      { headers: { 'x-proofgate-passport': 'a.b.c' } },
      'passport_malformed 401',
    ],
    [
      'a passport in Authorization',
      BEARER,
      { headers: { authorization: 'Passport a.b.c' } },
      'passport_repeated 401',
    ],
    ['a point that leaves the signature in', READ, { isUnaware: true }, 'authorization_missing 401'],
    ['such a point, where only signatures count', WRITE, { isUnaware: true }, 'proof_missing 401'],
    [
      'half a transcript beside it at such a point',
      READ,
      { isUnaware: true, headers: { 'x-proofgate-transcript': 'x' } },
      'proof_ambiguous 401',
    ],
    [
      'a passport beside it at such a point',
      WRITE,
      { isUnaware: true, headers: { authorization: 'Passport a.b.c' } },
      'proof_ambiguous 401',
    ],
    [
      'a route that accepts transcripts alone',
      { ...READ, url: `${ORIGIN}/v1/prices` },
      {},
      'authorization_missing 401',
    ],
  ])('%s', async (_, request, change, expected) => {
    const { decision, store } = await decide(request, change);
    expect(outcomeOf(decision).replace(/^[a-z_]+\//, '')).toBe(expected);
    expect(store.claims).toEqual([]);
  });
});

/** The site after a change, with a caller of `orders-read`. */
async function decideAt(change: (content: SiteContent) => void, options: Change = {}) {
  const content = httpSiteContent();
  change(content);
  return decide(READ, options, await compileSite(content));
}

describe('the steps in their order', () => {
  const blockBilling = (content: SiteContent) => {
    const [client] = content.clients ?? [];
    content.blocked = [{ issuer: client?.issuer ?? '', subject: client?.subject ?? '' }];
  };

  it('denies a blocked caller, and says so only to the holder of its key', async () => {
    expect(outcomeOf((await decideAt(blockBilling)).decision)).toBe(
      'invalid_request_proof/subject_blocked 401',
    );
    const forged = { sign: { key: keys.reporting, keyId: KEY_ID.billing } };
    expect(outcomeOf((await decideAt(blockBilling, forged)).decision)).toBe(
      'invalid_request_proof/proof_signature 401',
    );
  });

  it('skips source and attributes of an unknown key, and no other step', async () => {
    const stale = (content: SiteContent) => {
      for (const route of content.routes) route.max_staleness_seconds = 1;
    };
    const unknown = { sign: { keyId: 'dk_nobody' } };
    expect(outcomeOf((await decideAt(stale, unknown)).decision)).toBe('stale_bundle_fail_closed/stale 503');
    const { decision, events } = await decide(READ, unknown);
    expect(outcomeOf(decision)).toBe('invalid_request_proof/key_unknown 401');
    expect(events[0]).toMatchObject({ subject: undefined, key_id: undefined, caller_verified: false });
  });

  it('compares sources and attributes with the bundle alone', async () => {
    const restrict = (content: SiteContent) => {
      for (const route of content.routes) route.required_context = { team: ['other'] };
    };
    expect(outcomeOf((await decideAt(restrict)).decision)).toBe('context_mismatch/team 403');
  });
});

describe('one use', () => {
  it('records holder, nonce and times as for a transcript', async () => {
    const nonce = newNonce();
    const { store } = await decide(READ, { sign: { nonce } });
    const { store: again } = await decide(WRITE, { sign: { nonce } });
    expect(again.claims[0]?.identifier).toBe(store.claims[0]?.identifier);
    expect(store.claims[0]).toMatchObject({
      holderThumbprint: keys.billing.publicKey.thumbprint,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 60,
    });
  });

  it('lets no second request begin a body with the same proof', async () => {
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
    const facts = await factsOf(WRITE);
    const first = verifier.awaitBody(facts);
    expect([outcomeOf(first), outcomeOf(verifier.awaitBody(facts))]).toEqual(['awaited', 'jti_replay 403']);
    const unsigned = await factsOf(WRITE, { sign: { fields: ['@method', '@target-uri'] } });
    expect(outcomeOf(verifier.awaitBody(unsigned))).toContain('component.content-digest');
  });
});

describe('both formats on one route', () => {
  /** A request with a transcript, and with these lines of `Signature-Input`. */
  function withInputs(...inputs: readonly string[]): RequestFacts {
    const received = (wire: WireRequest) => {
      const lines = inputs.map((value) => ({ name: 'signature-input', value }));
      return { ...wire, headers: [...wire.headers, ...lines] };
    };
    return signRequest(keys, { caller: 'broker', route: 'orders-read' }, { received }).facts;
  }

  it.each([
    [['cdn=("@authority");tag="cdn"']],
    [['cdn=( "@authority" ),;']],
    [['cdn=("@authority")', 'cdn=("@authority")']],
  ])('allows a transcript, whatever signatures of others the request has: %j', (inputs) => {
    for (const more of [{}, { removesProofs: true }] as const) {
      const { verifier, events } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
      const decision = checkNow(verifier, { ...withInputs(...inputs), ...more });
      expect(outcomeOf(decision)).toBe('allowed');
      expect(decision).toMatchObject({ proofFormat: 'transcript-v1', otherSignatures: undefined });
      expect(events).toMatchObject([{ proof_format: 'transcript-v1' }]);
    }
  });

  it('denies a transcript beside a signature for the site where the point would leave that in', async () => {
    const { facts } = await decide(READ);
    const inputs = facts.headers.values('signature-input');
    expect(inputs).toHaveLength(1);
    for (const more of [{ removesProofs: false }, { removesProofs: true }]) {
      const { store, verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
      const decision = checkNow(verifier, { ...withInputs(...inputs), ...more });
      const detail = more.removesProofs ? 'proof_malformed' : 'proof_ambiguous';
      expect([outcomeOf(decision), store.claims]).toEqual([`invalid_request_proof/${detail} 401`, []]);
    }
  });

  it('denies a transcript where only signatures count', async () => {
    const { facts } = signRequest(keys, { caller: 'broker', route: 'everything' });
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
    const decision = checkNow(verifier, { ...facts, removesProofs: true });
    expect(outcomeOf(decision)).toBe('invalid_request_proof/proof_missing 401');
  });

  it('never signs the same text: a transcript begins with its version, a signature base with a quote', async () => {
    const { transcriptText } = signRequest(keys, { caller: 'billing', route: 'orders-read' });
    const { facts } = await decide(READ);
    const { signatureBase } = explainRequest(facts, snapshot, {
      nowSeconds: NOW_SECONDS,
      realtimeStalenessSeconds: 10,
    });
    expect(transcriptText).toMatch(/^transcript-v1\n/);
    expect(signatureBase).toMatchObject({
      kind: 'covered',
      lines: [
        ['@method', 'GET'],
        ['@target-uri', READ.url],
      ],
    });
  });
});

describe('Accept-Signature', () => {
  const bare = { headers: { 'signature-input': undefined, signature: undefined } };
  const asked = async (request: PlainRequest) => (await decide(request, bare)).decision;

  it.each([
    [WRITE, '"@method" "@target-uri" "content-digest" "content-type"'],
    [READ, '"@method" "@target-uri"'],
    [TENANT, '"@method" "@target-uri" "accept" "x-tenant"'],
  ])('lists what %j needs', async (request, components) => {
    expect(await asked(request)).toMatchObject({
      acceptSignature: `sig=(${components});created;expires;nonce;keyid;tag="proofgate/${AUTH_SITE}"`,
    });
  });

  it('is absent for a wrong proof, and on other routes', async () => {
    const wrong = await decide(READ, { sign: { keyId: 'dk_nobody' } });
    expect(wrong.decision).not.toHaveProperty('acceptSignature');
    expect(await asked({ ...READ, url: `${ORIGIN}/v1/prices` })).not.toHaveProperty('acceptSignature');
  });
});

describe('an observed request', () => {
  const observations = { observes: () => true, observesUnmatched: () => true };
  const observe = async (request: PlainRequest, change: Change, more: Partial<RequestFacts> = {}) => {
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS, observations });
    return checkNow(verifier, { ...(await factsOf(request, change)), ...more });
  };
  const PLACES = [
    ['where signatures count', READ],
    ['where transcripts alone count', { ...READ, url: `${ORIGIN}/v1/prices` }],
    ['that no route matches', { ...READ, url: `${ORIGIN}/v2/new` }],
  ] as const;

  it.each(PLACES)('%s loses a signature for the site, and no other', async (_, request) => {
    const unused = await observe(request, { sign: { keyId: 'dk_nobody' } });
    expect(unused).toMatchObject({ kind: 'observed', unusedProofs: HTTP_SIGNATURE_FIELDS });
    const others = await observe(request, { sign: { tag: 'cdn' } });
    expect(others).toMatchObject({ kind: 'observed', unusedProofs: [] });
  });

  it.each(PLACES)('%s is denied with one where the point would leave it in', async (_, request) => {
    expect(await observe(request, { isUnaware: true })).toMatchObject({ kind: 'denied' });
    const others = await observe(request, { isUnaware: true, sign: { tag: 'cdn' } });
    expect(others).toMatchObject({ kind: 'observed', unusedProofs: [] });
  });
});

describe('the explanation of a denial', () => {
  async function capturedText(request: PlainRequest, change: Change): Promise<string> {
    const captured: DeniedRequest[] = [];
    const onDenied = (denied: DeniedRequest) => captured.push(denied);
    const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS, onDenied });
    checkNow(verifier, await factsOf(request, change));
    const [denied] = captured;
    if (denied === undefined) throw new Error('not denied');
    const options = { realtimeStalenessSeconds: 10, keepsCredentials: false };
    return JSON.parse(captureDocument(denied, options)).text.join('\n');
  }

  it('shows the signature base line by line, without what is secret', async () => {
    const nonce = newNonce();
    const text = await capturedText(TENANT, {
      sign: { nonce, fields: ['@method', '@target-uri', 'accept'] },
    });
    expect(text).toContain('request_binding_mismatch (component.x-tenant)');
    expect(text).toMatch(
      /"@method": GET\n +"@target-uri": https:\/\/api.shop.example\/v1\/tenants\n +"accept": \[3 characters\]\n +"@signature-params": \[\d+ characters\]/,
    );
    expect(text).not.toContain(nonce);
  });

  it('names a header that does not occur exactly once', async () => {
    const fields = ['@method', '@target-uri', 'accept', 'x-tenant'];
    const text = await capturedText(TENANT, {
      sign: { fields },
      headers: { 'x-tenant': { kind: 'ambiguous' } },
    });
    expect(text).toContain('HTTP message signature of key dk_billing, x-tenant does not occur exactly once');
  });

  it('says of an unknown key what it can', async () => {
    const text = await capturedText(READ, { sign: { keyId: 'dk_nobody' } });
    expect(text).toContain('invalid_request_proof (key_unknown)');
    expect(text).toMatch(/^2 .*: not reached$/m);
    expect(text).not.toContain('passport_signature');
    expect(text).toContain('HTTP message signature of key [9 characters]');
  });
});
