/** DPoP proofs of our signer: the verifier allows what it signed, and the signer keeps one nonce of each server. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import {
  RequestSigner,
  type RequestToSign,
  type SignedRequest,
} from '../../../src/caller/sign/request-signer.ts';
import { createDpopNonces } from '../../../src/protocol/dpop-nonce.ts';
import { parseDpopProof } from '../../../src/protocol/dpop-proof.ts';
import { parseSigningProfiles } from '../../../src/protocol/signing-profile-file.ts';
import { verifySignature } from '../../../src/protocol/verify-signature.ts';
import { factsOf } from '../../support/caller/signing.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import {
  httpSiteContent,
  httpSiteKeys,
  httpSiteProfiles,
} from '../../support/fixtures/http-signature-site.ts';
import { compileSite } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';

const SIGNED = ['orders-read', 'orders-write', 'tenants'];
const nonces = createDpopNonces(AUTH_SITE, [Buffer.alloc(32, 7)]);
let snapshot: Snapshot;
beforeAll(async () => {
  const content = httpSiteContent();
  for (const route of content.routes) {
    if (!SIGNED.includes(route.route_id)) continue;
    route.accepted_proofs = ['dpop'];
    route.unbound = ['route', 'site', 'query', 'body', 'headers'];
    if (route.route_id === 'orders-read') route.dpop_nonce = 'required';
  }
  snapshot = await compileSite(content);
});

type Caller = 'billing' | 'reporting';

function newSigner(caller: Caller = 'billing', passports?: ReadonlyMap<string, string>): RequestSigner {
  const signer = new RequestSigner({ proof: 'dpop', nowMs: () => NOW_SECONDS * 1000 });
  const file = parseSigningProfiles(JSON.stringify(httpSiteProfiles(caller)), 'profile');
  signer.replaceIdentity({ key: httpSiteKeys[caller], files: [file], passports });
  return signer;
}

function signed(signer: RequestSigner, request: RequestToSign): SignedRequest {
  const result = signer.sign(request);
  if (result.kind === 'failed') throw new Error(result.code);
  return result;
}

function linesOf({ headers }: SignedRequest): { readonly token: string; readonly proof: string } {
  const [authorization, dpop] = headers.reveal();
  expect([authorization?.name, dpop?.name]).toEqual(['Authorization', 'DPoP']);
  return { token: authorization?.value ?? '', proof: dpop?.value ?? '' };
}

function verdictOn(request: RequestToSign, result: SignedRequest): string {
  const own = request.headers.filter(({ name }) => !result.headers.replaces(name));
  const facts = { ...factsOf({ ...request, headers: own }, result), removesProofs: true as const };
  return outcomeOf(checkNow(createTestVerifier({ snapshot, dpopNonces: nonces }).verifier, facts));
}

const header = (name: string, value: string) => ({ name, value });
const NEW = nonces.issue(NOW_SECONDS);
const READ: RequestToSign = { method: 'GET', url: `${ORIGIN}/v1/orders/17?x=%2f..&y=%zz`, headers: [] };
const WRITE: RequestToSign = {
  method: 'POST',
  url: `${ORIGIN}/v1/orders`,
  headers: [header('Content-Type', 'application/json')],
  body: Buffer.from('{"amount":1}'),
};
const TENANT: RequestToSign = {
  method: 'GET',
  url: `${ORIGIN}/v1/tenants`,
  headers: [header('X-Tenant', 'a'), header('Accept', 'a/b')],
};

describe('the verifier allows', () => {
  it.each<[string, Caller, RequestToSign]>([
    ['a body that is not bound', 'billing', WRITE],
    ['headers that are not bound', 'billing', TENANT],
    ['a nonce, and a query that the proof leaves out', 'billing', { ...READ, dpopNonce: NEW }],
    ['a P-256 key', 'reporting', { ...READ, dpopNonce: NEW }],
    [
      'an origin in other letters',
      'billing',
      { ...READ, url: READ.url.replace('api', 'API'), dpopNonce: NEW },
    ],
  ])('%s', (_, caller, request) => {
    expect(verdictOn(request, signed(newSigner(caller), request))).toBe('allowed');
  });

  it('what it signs in place of an earlier proof', () => {
    const signer = newSigner();
    const earlier = signed(signer, WRITE);
    const again = { ...WRITE, headers: [...WRITE.headers, ...earlier.headers.reveal()] };
    const result = signed(signer, again);
    expect(result.jti).not.toBe(earlier.jti);
    expect(verdictOn(again, result)).toBe('allowed');
  });
});

it.each<Caller>(['billing', 'reporting'])('is closed: the members of a proof of %s', (caller) => {
  const result = signed(newSigner(caller), { ...READ, dpopNonce: 'n-1' });
  const { proof } = linesOf(result);
  const [head, claims] = proof
    .split('.', 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
  const { algorithm, jwk } = httpSiteKeys[caller].publicKey;
  expect(head).toEqual({ typ: 'dpop+jwt', alg: algorithm, jwk });
  const htu = `${ORIGIN}/v1/orders/17`;
  const ath = expect.stringMatching(/^[\w-]{43}$/);
  expect(claims).toEqual({ jti: result.jti, htm: 'GET', htu, iat: NOW_SECONDS, ath, nonce: 'n-1' });
  const parsed = parseDpopProof(proof);
  if (parsed === undefined) throw new Error('not a proof');
  expect(verifySignature(httpSiteKeys[caller].publicKey, parsed.signingInput, parsed.signature)).toBe(true);
  expect(result.expiresAtSeconds).toBe(NOW_SECONDS + 60);
});

describe('refuses before it is sent', () => {
  const foreign = (...headers: readonly (readonly [string, string])[]): RequestToSign => ({
    ...WRITE,
    headers: headers.map(([name, value]) => header(name, value)),
  });
  it.each<[string, RequestToSign, string]>([
    ["the application's Authorization", foreign(['authorization', 'Bearer x']), 'header_reserved'],
    [
      "the application's DPoP-bound token",
      foreign(['Authorization', 'DPoP eyJ.eyJ.AA'], ['dpop', 'x']),
      'header_reserved',
    ],
    ["the application's own proof", foreign(['DPoP', 'eyJ.eyJ.AA']), 'header_reserved'],
    ['a header to sign', { ...WRITE, signHeaders: ['content-type'] }, 'header_invalid'],
    ['a nonce with a space', { ...WRITE, dpopNonce: 'a b' }, 'header_invalid'],
    ['passport_header', { method: 'GET', url: `${ORIGIN}/v1/bearer`, headers: [] }, 'header_reserved'],
    ['a long path', { ...READ, url: `${ORIGIN}/v1/orders/${'a'.repeat(4000)}` }, 'credentials_too_large'],
  ])('%s', (_, request, code) => {
    expect(newSigner().sign(request)).toMatchObject({ kind: 'failed', code });
  });

  it("a key without a broker's passport for the audience", () => {
    expect(newSigner('billing', new Map()).sign(WRITE)).toMatchObject({ code: 'passport_required' });
  });
});

describe('nonces', () => {
  const CHALLENGE = header('WWW-Authenticate', 'DPoP error="use_dpop_nonce", algs="ES256 Ed25519 EdDSA"');
  const given = (nonce: string) => header('DPoP-Nonce', nonce);
  const nonceOf = (signer: RequestSigner, request = WRITE) =>
    parseDpopProof(linesOf(signed(signer, request)).proof)?.nonce;

  it('of any answer are kept for the origin, the newest alone', () => {
    const signer = newSigner();
    expect(nonceOf(signer)).toBeUndefined();
    expect(signer.readAnswer(ORIGIN, 200, [given('n-1')])).toBe(false);
    expect(nonceOf(signer)).toBe('n-1');
    expect(signer.readAnswer('https://other.example', 200, [given('n-0')])).toBe(false);
    expect(signer.readAnswer(ORIGIN, 403, [])).toBe(false);
    expect(nonceOf(signer)).toBe('n-1');
    expect(signer.readAnswer(ORIGIN, 401, [CHALLENGE, given('n-2')])).toBe(true);
    expect(nonceOf(signer)).toBe('n-2');
  });

  it('make the verifier allow what it denied', () => {
    const signer = newSigner();
    expect(verdictOn(READ, signed(signer, READ))).toBe('invalid_request_proof/dpop_nonce 401');
    expect(signer.readAnswer(ORIGIN, 401, [CHALLENGE, given(NEW)])).toBe(true);
    expect(verdictOn(READ, signed(signer, READ))).toBe('allowed');
  });

  it.each<[string, number, readonly { readonly name: string; readonly value: string }[], boolean]>([
    [
      'beside another challenge',
      401,
      [header('www-authenticate', `Passport, ${CHALLENGE.value}`), given('n')],
      true,
    ],
    [
      'in lines of their own',
      401,
      [header('WWW-Authenticate', 'Basic realm="a"'), CHALLENGE, given('n')],
      true,
    ],
    ['without quotes', 401, [header('WWW-Authenticate', 'dpop error=use_dpop_nonce'), given('n')], true],
    ['with another status', 403, [CHALLENGE, given('n')], false],
    ['without a nonce', 401, [CHALLENGE], false],
    ['with two nonces', 401, [CHALLENGE, given('n'), given('m')], false],
    ['with a nonce that no proof may carry', 401, [CHALLENGE, given('a "b"')], false],
    ['with a nonce that is too long', 401, [CHALLENGE, given('n'.repeat(257))], false],
    [
      'with another error',
      401,
      [header('WWW-Authenticate', 'DPoP error="invalid_dpop_proof"'), given('n')],
      false,
    ],
    [
      'of another scheme',
      401,
      [header('WWW-Authenticate', 'Bearer error="use_dpop_nonce"'), given('n')],
      false,
    ],
  ])('are asked for: %s', (_, status, headers, asks) => {
    expect(newSigner().readAnswer(ORIGIN, status, headers)).toBe(asks);
  });

  it('are kept for at most 256 origins', () => {
    const signer = newSigner();
    signer.readAnswer(ORIGIN, 200, [given('n-1')]);
    for (let i = 0; i < 255; i++) signer.readAnswer(`https://${i}.example`, 200, [given('n')]);
    expect(nonceOf(signer)).toBe('n-1');
    signer.readAnswer('https://last.example', 200, [given('n')]);
    expect(nonceOf(signer)).toBeUndefined();
  });

  it('of answers are nothing to the other formats', () => {
    expect(new RequestSigner().readAnswer(ORIGIN, 401, [CHALLENGE, given('n')])).toBe(false);
  });
});
