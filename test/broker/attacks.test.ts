/** Every attack that docs/operate/broker.md "Attacks" names, with the code that refuses it. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { GeneralName, KeyUsageFlags } from '@peculiar/asn1-x509';
import { BundleStore } from '../../src/spiffe/bundles/bundle-store.ts';
import {
  jwtSvidProof,
  type SignedForm,
  signedForm,
  signHolder,
  softwareKeyProof,
  softwareKeysYaml,
} from '../support/broker/broker-callers.ts';
import {
  AUDIENCE,
  HOUR_MS,
  NOW_MS,
  newAuthority,
  type TestBroker,
  testBroker,
  VALID,
} from '../support/broker/broker-fixture.ts';
import { bundlesOf, type CertificateContent, type IssuedSvid } from '../support/fakes/spiffe-authority.ts';
import { newSigningKey, TRUST_DOMAIN } from '../support/fixtures/bundle-content.ts';

const authority = newAuthority();
const otherDomain = newAuthority('other.example');
const holder = newSigningKey();
const registered = newSigningKey();
const ID = `spiffe://${TRUST_DOMAIN}/orders`;
let broker: TestBroker;

beforeAll(async () => {
  broker = await testBroker({
    authorities: [authority, otherDomain],
    softwareKeys: softwareKeysYaml(registered),
  });
});

const svidOf = (id: string, content: CertificateContent = {}) =>
  authority.issueSvid(id, { ...VALID, ...content });

async function codeOfForm(svid: IssuedSvid, changed: (form: SignedForm) => SignedForm = (form) => form) {
  return (await broker.passport(changed(signedForm(await broker.challenge(), svid, holder)))).code;
}

/** A connection whose client certificate is the SVID. */
async function brokerWithPeer(svid: IssuedSvid, isResumed = false, bundles = bundlesOf(authority)) {
  const connection = () => ({ kind: 'tls' as const, clientCertificates: svid.chainDer, isResumed });
  return testBroker({ bundles, connection });
}

describe('TLS', () => {
  it('a resumed session proves no key', async () => {
    const resumed = await brokerWithPeer(svidOf('/orders'), true);
    expect((await resumed.passport({ kind: 'mtls' })).code).toBe('tls_session_resumed');
  });

  it('a connection outlives its SVID', async () => {
    const { passport, clock } = await brokerWithPeer(svidOf('/orders', { notAfterMs: NOW_MS + 20_000 }));
    expect((await passport({ kind: 'mtls' })).status).toBe(200);
    clock.nowMs += 21_000;
    expect((await passport({ kind: 'mtls' })).code).toBe('svid_expired');
  });

  it('a connection outlives the root of its SVID', async () => {
    const bundles = new BundleStore();
    const update = bundles.addSource();
    update([authority.bundle]);
    const { passport } = await brokerWithPeer(svidOf('/orders'), false, bundles);
    expect((await passport({ kind: 'mtls' })).status).toBe(200);
    update([newAuthority().bundle]);
    expect((await passport({ kind: 'mtls' })).code).toBe('svid_untrusted');
  });

  it('a connection has no client certificate', async () => {
    const plain = await testBroker();
    expect((await plain.passport({ kind: 'mtls' })).code).toBe('client_certificate_missing');
    const bare = await testBroker({
      connection: () => ({ kind: 'tls', clientCertificates: [], isResumed: false }),
    });
    expect((await bare.passport({ kind: 'mtls' })).code).toBe('client_certificate_missing');
  });

  it('identity in X-Forwarded-Client-Cert is never read', async () => {
    const { cert } = svidOf('/orders').pem;
    const answer = await fetch(`${broker.url}/v1/passports`, {
      method: 'POST',
      body: JSON.stringify({ audience: AUDIENCE, proof: { kind: 'mtls' } }),
      headers: {
        'content-type': 'application/json',
        'x-forwarded-client-cert': `By=x;URI=${ID};Cert="${encodeURIComponent(cert)}"`,
        'x-forwarded-for': '127.0.0.1',
        authorization: `Bearer ${await authority.issueJwtSvid(ID, AUDIENCE)}`,
      },
    });
    expect(await answer.json()).toMatchObject({ code: 'client_certificate_missing' });
  });
});

describe('certificates', () => {
  it("another trust domain's authority signs our ID", async () => {
    expect(await codeOfForm(otherDomain.issueSvid(ID, VALID))).toBe('svid_untrusted');
  });

  it('an authority that no bundle has', async () => {
    expect(await codeOfForm(newAuthority().issueSvid(ID, VALID))).toBe('svid_untrusted');
    expect(await codeOfForm(newAuthority('unknown.example').issueSvid('/orders', VALID))).toBe(
      'trust_domain_unknown',
    );
  });

  it.each(['/spire/server', '/spire/agent/x', '/spire'])("SPIRE's own SVID %s", async (path) => {
    expect(await codeOfForm(svidOf(path))).toBe('svid_reserved_id');
  });

  const uris = (...paths: readonly string[]) => ({
    uris: paths.map((path) => `spiffe://${TRUST_DOMAIN}${path}`),
  });
  const faults: readonly (readonly [string, CertificateContent, string])[] = [
    ['two URI names', uris('/orders', '/billing'), 'svid_names'],
    ['no URI name', { uris: [], dnsNames: ['orders.shop.example'] }, 'svid_names'],
    ['a CA certificate as leaf', { isCa: true, keyUsage: KeyUsageFlags.keyCertSign }, 'svid_not_leaf'],
    ['a key that may sign certificates', { keyUsage: leafAndCertificateSign() }, 'svid_not_leaf'],
    ['no digital signature', { keyUsage: KeyUsageFlags.keyEncipherment }, 'svid_key_usage'],
    ['no key usage', { keyUsage: null }, 'svid_key_usage'],
    ['a weak key', { key: 'RSA-1024' }, 'svid_key_usage'],
    ['the trust domain as ID', uris(''), 'svid_id'],
    [
      'an expired certificate',
      { notBeforeMs: NOW_MS - 2 * HOUR_MS, notAfterMs: NOW_MS - 1000 },
      'svid_expired',
    ],
    ['a certificate of the future', { notBeforeMs: NOW_MS + HOUR_MS }, 'svid_not_yet_valid'],
    ...['/a/../b', '/a//b', '/a%2fb', '/a?b', '/a#b', '/a/', '/', '/.', '/ä'].map(
      (path) => [`the ID path ${path}`, uris(path), 'svid_id'] as const,
    ),
    ['another case of the scheme', { uris: [`SPIFFE://${TRUST_DOMAIN}/orders`] }, 'svid_id'],
    ['another case of the trust domain', { uris: ['spiffe://Shop.example/orders'] }, 'svid_id'],
  ];
  it.each(faults)('%s', async (_name, content, code) => {
    expect(await codeOfForm(svidOf('/orders', content))).toBe(code);
  });

  it("an intermediate whose name constraints exclude the leaf's trust domain", async () => {
    const permitted = [new GeneralName({ uniformResourceIdentifier: 'elsewhere.example' })];
    const intermediate = authority.issueIntermediate({ ...VALID, nameConstraints: { permitted } });
    expect(await codeOfForm(intermediate.issueSvid('/orders', VALID))).toBe('svid_constraints');
  });

  it('a chain of which a part is missing, foreign or no certificate', async () => {
    const nested = authority.issueIntermediate(VALID).issueSvid('/orders', VALID);
    expect(await codeOfForm(nested)).toBeUndefined();
    expect(
      await codeOfForm(nested, (form) => ({ ...form, certificates: form.certificates.slice(0, 1) })),
    ).toBe('svid_untrusted');
    const certificates = ['AAAA'];
    expect(await codeOfForm(nested, (form) => ({ ...form, certificates }))).toBe('svid_malformed');
    const spaced = (form: SignedForm) => ({
      ...form,
      certificates: form.certificates.map((text) => `${text}=`),
    });
    expect(await codeOfForm(nested, spaced)).toBe('svid_malformed');
  });
});

describe('the signed form', () => {
  it('a proxy swaps the holder key', async () => {
    const thief = newSigningKey();
    const form = signedForm(await broker.challenge(), svidOf('/orders'), holder);
    const swapped = { ...form, holder_jwk: thief.publicKey.jwk };
    expect((await broker.passport(swapped)).code).toBe('svid_signature_invalid');
    const own = signedForm(form.challenge, svidOf('/orders'), thief);
    expect((await broker.passport({ ...swapped, holder_signature: own.holder_signature })).code).toBe(
      'svid_signature_invalid',
    );
  });

  it('a proxy changes the audience', async () => {
    const form = signedForm(await broker.challenge(), svidOf('/orders'), holder);
    expect((await broker.passport(form, 'https://other.shop.example')).code).toBe('svid_signature_invalid');
  });

  it("another workload's certificate beside a caller's own signatures", async () => {
    const form = signedForm(await broker.challenge(), svidOf('/orders'), holder);
    const certificates = svidOf('/billing').chainDer.map((der) => der.toString('base64'));
    expect((await broker.passport({ ...form, certificates })).code).toBe('svid_signature_invalid');
  });

  it('another certificate of the same key', async () => {
    const svid = svidOf('/orders');
    const twin = { ...svidOf('/orders'), privateKey: svid.privateKey };
    expect((await broker.passport(signedForm(await broker.challenge(), twin, holder))).code).toBe(
      'svid_signature_invalid',
    );
  });

  it('a holder key that the caller does not have', async () => {
    const form = signedForm(await broker.challenge(), svidOf('/orders'), holder);
    const other = signHolder(newSigningKey(), Buffer.from('x'));
    expect((await broker.passport({ ...form, holder_signature: other })).code).toBe(
      'holder_signature_invalid',
    );
  });

  const texts = [
    ['relayed to another broker', { brokerUrl: 'https://evil.shop.example' }],
    ['made for another operation', { operation: 'profiles' }],
    ['made for another challenge', { challenge: 'AAAA' }],
    ['over another credential', { credentialSha256: 'AAAA' }],
    ['over another holder key', { holderThumbprint: 'AAAA' }],
    ['with another audience', { audience: 'urn:other' }],
  ] as const;
  it.each(texts)('a signature %s', async (_name, edits) => {
    const challenge = await broker.challenge();
    const form = signedForm(challenge, svidOf('/orders'), holder, edits);
    expect((await broker.passport(form)).code).toBe('svid_signature_invalid');
    const software = softwareKeyProof(challenge, registered, undefined, edits);
    expect((await broker.passport(software)).code).toBe('registered_signature_invalid');
    const jwt = await jwtSvidProof(challenge, authority, ID, holder, edits);
    expect((await broker.passport(jwt)).code).toBe('holder_signature_invalid');
  });

  it('a signature made in advance', async () => {
    const form = signedForm(await broker.challenge(), svidOf('/orders'), holder);
    broker.clock.nowMs += 60_000;
    const { code } = await broker.passport(form);
    broker.clock.nowMs = NOW_MS;
    expect(code).toBe('challenge_expired');
    expect((await broker.passport({ ...form, challenge: 'A'.repeat(72) })).code).toBe('challenge_invalid');
  });
});

describe('JWT-SVIDs', () => {
  const jwt = async (edits: Parameters<typeof jwtSvidProof>[4]) =>
    (await broker.passport(await jwtSvidProof(await broker.challenge(), authority, ID, holder, edits))).code;

  it('relayed from another service', async () => {
    expect(await jwt({ tokenAudience: 'https://api.shop.example' })).toBe('jwt_svid_audience');
  });

  it('for another holder key at this broker', async () => {
    const stolen = await jwtSvidProof(await broker.challenge(), authority, ID, newSigningKey());
    const own = await jwtSvidProof(stolen.challenge, authority, ID, holder);
    expect((await broker.passport({ ...stolen, holder_jwk: own.holder_jwk })).code).toBe(
      'holder_signature_invalid',
    );
    // Signed by the thief over the stolen token.
    const relayed = await jwtSvidProof(stolen.challenge, authority, ID, holder, {
      tokenAudience: `https://broker.shop.example:9196#jkt=${newSigningKey().publicKey.thumbprint}`,
    });
    expect((await broker.passport(relayed)).code).toBe('jwt_svid_audience');
  });

  it('with a second audience', async () => {
    const good = `https://broker.shop.example:9196#jkt=${holder.publicKey.thumbprint}`;
    expect(await jwt({ tokenAudience: [good] })).toBeUndefined();
    expect(await jwt({ tokenAudience: [good, 'https://api.shop.example'] })).toBe('jwt_svid_audience');
  });

  it('a workload identity token (WIT) of the same authority', async () => {
    expect(await jwt({ header: { typ: 'wit+jwt' } })).toBe('jwt_svid_header');
  });

  it('expired, of another key, for SPIRE itself', async () => {
    expect(await jwt({ claims: { exp: NOW_MS / 1000 } })).toBe('svid_expired');
    expect(await jwt({ header: { kid: 'other' } })).toBe('jwt_svid_key_unknown');
    expect(await jwt({ claims: { sub: `spiffe://${TRUST_DOMAIN}/spire/server` } })).toBe('svid_reserved_id');
    expect(await jwt({ claims: { sub: 'spiffe://other.example/orders' } })).toBe('jwt_svid_key_unknown');
  });

  it('a bearer alone', async () => {
    const { challenge, token } = await jwtSvidProof(await broker.challenge(), authority, ID, holder);
    const proof = { kind: 'jwt_svid', token, challenge };
    expect((await broker.post('/v1/passports', { audience: AUDIENCE, proof })).code).toBe(
      'request_malformed',
    );
  });

  it('where the broker does not accept them', async () => {
    const strict = await testBroker({ authorities: [authority], settings: { acceptsJwtSvids: false } });
    const proof = await jwtSvidProof(await strict.challenge(), authority, ID, holder);
    expect((await strict.passport(proof)).code).toBe('jwt_svid_not_accepted');
  });
});

describe('software keys', () => {
  it('that is not registered', async () => {
    const proof = softwareKeyProof(await broker.challenge(), newSigningKey());
    expect((await broker.passport(proof)).code).toBe('key_not_registered');
  });

  it('of which only the public half is known', async () => {
    const proof = softwareKeyProof(await broker.challenge(), registered);
    const other = softwareKeyProof(proof.challenge, newSigningKey());
    const forged = { ...proof, registered_signature: other.registered_signature };
    expect((await broker.passport(forged)).code).toBe('registered_signature_invalid');
  });

  it('vouching for a key that does not sign, or signed another text', async () => {
    const fresh = newSigningKey();
    const proof = softwareKeyProof(await broker.challenge(), registered, fresh);
    const { holder_signature: _, ...unsigned } = proof;
    expect((await broker.passport(unsigned)).code).toBe('request_malformed');
    const swapped = { ...proof, holder_signature: signHolder(fresh, Buffer.from('x')) };
    expect((await broker.passport(swapped)).code).toBe('holder_signature_invalid');
  });

  it('that claim a class, a subject or an issuer in the request', async () => {
    const proof = softwareKeyProof(await broker.challenge(), registered);
    for (const claim of ['key_binding', 'subject', 'trust_domain', 'issuer']) {
      const inBody = { audience: AUDIENCE, proof, [claim]: 'attested_workload' };
      expect((await broker.post('/v1/passports', inBody)).code).toBe('request_malformed');
      const inProof = { audience: AUDIENCE, proof: { ...proof, [claim]: 'attested_workload' } };
      expect((await broker.post('/v1/passports', inProof)).code).toBe('request_malformed');
    }
  });

  it('of small order', async () => {
    const proof = softwareKeyProof(await broker.challenge(), registered);
    const registered_jwk = { kty: 'OKP' as const, crv: 'Ed25519' as const, x: `AQ${'A'.repeat(41)}` };
    expect((await broker.passport({ ...proof, registered_jwk })).code).toBe('holder_key_invalid');
  });
});

function leafAndCertificateSign(): number {
  return KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign;
}
