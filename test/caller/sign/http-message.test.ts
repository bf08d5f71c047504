/**
 * HTTP message signatures of our signer: the verifier allows exactly what it signed, and the npm package
 * http-message-signatures verifies it too.
 */
import { createPublicKey, hash } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { createVerifier, httpbis } from 'http-message-signatures';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { CredentialHeaders } from '../../../src/caller/sign/credential-headers.ts';
import { RequestSigner, type RequestToSign } from '../../../src/caller/sign/request-signer.ts';
import { parseSigningProfiles } from '../../../src/protocol/signing-profile-file.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { codeOf, factsOf, newEd25519Key, signerOf, signRequest } from '../../support/caller/signing.ts';
import { NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import {
  compileHttpSite,
  httpSiteKeys,
  httpSiteProfiles,
} from '../../support/fixtures/http-signature-site.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await compileHttpSite();
});

type Caller = 'billing' | 'reporting';

function profilesOf(caller: Caller, members: object = {}) {
  return parseSigningProfiles(JSON.stringify({ ...httpSiteProfiles(caller), ...members }), 'profile');
}

/** @throws ClientError */
function sign(request: RequestToSign, caller: Caller = 'billing', members: object = {}) {
  const profiles = profilesOf(caller, members);
  const signer = signerOf({ profiles, holderKey: httpSiteKeys[caller], nowSeconds: NOW_SECONDS });
  return signRequest(request, signer, 'http-message-signatures');
}

function arrived(request: RequestToSign, signed: ReturnType<typeof sign>): RequestFacts {
  const own = request.headers.filter(({ name }) => !signed.headers.replaces(name));
  return { ...factsOf({ ...request, headers: own }, signed), removesProofs: true };
}

function verdictOn(facts: RequestFacts): string {
  return outcomeOf(checkNow(createTestVerifier({ snapshot }).verifier, facts));
}

const header = (name: string, value: string) => ({ name, value });
const JSON_TYPE = header('Content-Type', 'application/json');
const BODY = Buffer.from('{"amount":1}');
const READ: RequestToSign = { method: 'GET', url: `${ORIGIN}/v1/orders/17?x=%2f..&y=%zz`, headers: [] };
const WRITE: RequestToSign = { method: 'POST', url: `${ORIGIN}/v1/orders`, headers: [JSON_TYPE], body: BODY };
const UPLOAD: RequestToSign = {
  method: 'PUT',
  url: `${ORIGIN}/v1/uploads/a`,
  headers: [JSON_TYPE],
  body: BODY,
};
const TENANT: RequestToSign = {
  method: 'GET',
  url: `${ORIGIN}/v1/tenants`,
  headers: [header('X-Tenant', 'acme'), header('Accept', 'a/b, c/d;q="1"')],
};
const BEARER: RequestToSign = {
  method: 'GET',
  url: `${ORIGIN}/v1/bearer`,
  headers: [header('Authorization', 'Bearer app')],
};

const lineOf = (headers: CredentialHeaders, name: string) =>
  headers.reveal().find((line) => line.name === name)?.value;
const componentsOf = (headers: CredentialHeaders) =>
  /^sig=\(([^)]*)\)/
    .exec(lineOf(headers, 'Signature-Input') ?? '')?.[1]
    ?.split(' ')
    .map((quoted) => quoted.slice(1, -1));

describe('allows', () => {
  it.each<[string, RequestToSign, readonly string[]]>([
    ['a request without a body', READ, []],
    ['an origin in other letters', { ...READ, url: READ.url.replace('api', 'API') }, []],
    ['a body with its type', WRITE, ['content-digest', 'content-type']],
    ['a body without a type', { ...WRITE, headers: [] }, ['content-digest']],
    ['an empty body', { ...WRITE, body: undefined }, ['content-digest', 'content-type']],
    ['a body on a route that does not bind it', UPLOAD, []],
    ['signed headers', TENANT, ['accept', 'x-tenant']],
    [
      'a header that the caller adds',
      { ...READ, headers: [header('If-Match', '"7"')], signHeaders: ['If-Match'] },
      ['if-match'],
    ],
    ["the application's Authorization", BEARER, []],
    [
      "the application's Authorization, signed",
      { ...BEARER, signHeaders: ['authorization'] },
      ['authorization'],
    ],
    [
      'a digest of an earlier body, which it replaces',
      { ...READ, headers: [header('Content-Digest', 'sha-256=:AAAA:')] },
      ['content-digest'],
    ],
    [
      "the application's digest where no body is bound",
      { ...UPLOAD, headers: [header('content-digest', 'sha-512=:AAAA:')] },
      [],
    ],
  ])('%s', async (_, request, covered) => {
    const signed = sign(request);
    expect(componentsOf(signed.headers)).toEqual(['@method', '@target-uri', ...covered]);
    expect(signed.signedHeaderNames).toEqual(covered);
    expect(verdictOn(arrived(request, signed))).toBe('allowed');
  });

  it.each<Caller>(['billing', 'reporting'])(
    'the key of %s, which another library verifies',
    async (caller) => {
      const signed = sign(READ, caller);
      expect(verdictOn(arrived(READ, signed))).toBe('allowed');
      const { headers } = signed;
      const { jwk } = httpSiteKeys[caller].publicKey;
      const key = createPublicKey({ key: { ...jwk }, format: 'jwk' });
      const verify = createVerifier(key, caller === 'billing' ? 'ed25519' : 'ecdsa-p256-sha256');
      const lines = Object.fromEntries(
        headers.reveal().map(({ name, value }) => [name.toLowerCase(), value]),
      );
      const seen: string[] = [];
      const verified = await httpbis.verifyMessage(
        {
          keyLookup: async ({ keyid }) => {
            seen.push(String(keyid));
            return { id: String(keyid), algs: [], verify };
          },
          requiredFields: ['@method', '@target-uri'],
          notAfter: NOW_SECONDS + 60,
          tolerance: Number.MAX_SAFE_INTEGER,
        },
        { method: READ.method, url: READ.url, headers: lines },
      );
      expect([verified, seen]).toEqual([true, [signed.keyId]]);
    },
  );

  it('its own signature of an earlier attempt, which it replaces', () => {
    const earlier = sign(WRITE);
    const again = { ...WRITE, headers: [...WRITE.headers, ...earlier.headers.reveal()] };
    const signed = sign(again);
    expect(signed.jti).not.toBe(earlier.jti);
    expect(verdictOn(arrived(again, signed))).toBe('allowed');
  });

  it('a body whose bytes are elsewhere', () => {
    const ofDigest = sign({
      ...WRITE,
      body: { sha256: hash('sha256', BODY, 'base64url'), byteLength: BODY.length },
    });
    expect(lineOf(ofDigest.headers, 'Content-Digest')).toBe(`sha-256=:${hash('sha256', BODY, 'base64')}:`);
    expect(verdictOn(arrived(WRITE, ofDigest))).toBe('allowed');
  });

  it('names with quotes and backslashes', () => {
    const odd = String.raw`dk_"\"`;
    const { headers } = sign(READ, 'billing', { key_id: odd, auth_site: String.raw`a"b\c` });
    expect(lineOf(headers, 'Signature-Input')).toContain(
      String.raw`;keyid="dk_\"\\\"";tag="proofgate/a\"b\\c"`,
    );
  });
});

describe('is for that request', () => {
  it.each<[string, RequestToSign, Partial<RequestToSign> & { target?: string }, string]>([
    ['another target', READ, { target: '/v1/orders/18' }, 'invalid_request_proof/proof_signature 401'],
    ['another body', WRITE, { body: Buffer.from('x') }, 'request_binding_mismatch/content-digest 403'],
    [
      'another type',
      WRITE,
      { headers: [header('content-type', 'text/plain')] },
      'invalid_request_proof/proof_signature 401',
    ],
    [
      'a type that it does not cover',
      { ...WRITE, headers: [] },
      { headers: [JSON_TYPE] },
      'request_binding_mismatch/component.content-type 403',
    ],
  ])('%s', (_, request, { target, ...change }, verdict) => {
    const facts = arrived({ ...request, ...change }, sign(request));
    expect(verdictOn(target === undefined ? facts : { ...facts, target })).toBe(verdict);
  });
});

describe('refuses before it is sent', () => {
  const foreign = (...lines: [string, string][]) => ({
    ...READ,
    headers: lines.map(([name, value]) => header(name, value)),
  });
  const own = () =>
    sign(READ)
      .headers.reveal()
      .map(({ name, value }): [string, string] => [name, value]);
  it.each<[string, () => RequestToSign, string]>([
    [
      'a target that ends in a bare ?',
      () => ({ ...READ, url: `${ORIGIN}/v1/orders/17?` }),
      'url_not_canonical',
    ],
    ['a signature of the application', () => foreign(['signature', 'keyId="a"']), 'header_reserved'],
    [
      'a signature of the application for another verifier',
      () => foreign(['signature-input', 'sig=("@method");tag="cdn"'], ['signature', 'sig=:AAAA:']),
      'header_reserved',
    ],
    [
      "the application's signature beside an earlier one of the signer",
      () => foreign(...own(), ['Signature-Input', 'app=("@method")']),
      'header_reserved',
    ],
    [
      'both on one line',
      () => foreign(...own().map(([name, value]): [string, string] => [name, `${value}, app=("@method")`])),
      'header_reserved',
    ],
    ["the application's Authorization", () => foreign(['authorization', 'Bearer x']), 'header_reserved'],
    ['two types of a body', () => ({ ...WRITE, headers: [JSON_TYPE, JSON_TYPE] }), 'header_repeated'],
    ['a missing signed header', () => ({ ...TENANT, headers: [] }), 'header_missing'],
    [
      'a digest that no verifier compares',
      () => ({
        ...UPLOAD,
        headers: [header('content-digest', 'sha-256=:AAAA:')],
        signHeaders: ['content-digest'],
      }),
      'header_invalid',
    ],
    [
      'a signature that covers itself',
      () => ({ ...foreign(...own()), signHeaders: ['signature'] }),
      'header_invalid',
    ],
    [
      'more than 8 KiB',
      () => {
        const names = Array.from({ length: 100 }, (_, i) => `x-${i}`.padEnd(100, 'x'));
        return { ...READ, headers: names.map((name) => header(name, 'a')), signHeaders: names };
      },
      'credentials_too_large',
    ],
  ])('%s', (_, request, code) => {
    expect(codeOf(() => sign(request()))).toBe(code);
  });

  it.each([
    ['a profile without a key ID', { key_id: undefined }, 'key_id_missing'],
    ['a profile of an attested workload', { key_binding: 'attested_workload' }, 'passport_required'],
  ])('%s', (_, members, code) => {
    expect(codeOf(() => sign(READ, 'billing', members))).toBe(code);
  });

  it("a key with a broker's passports", () => {
    const signer = new RequestSigner({ proof: 'http-message-signatures' });
    signer.replaceIdentity({ key: newEd25519Key(), files: [profilesOf('billing')], passports: new Map() });
    expect(signer.sign(READ)).toMatchObject({ kind: 'failed', code: 'key_id_missing' });
  });
});
