/** `POST /v1/proofs`: the real verifier accepts them; only direct connections get them. */

import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { Connection } from '../../src/broker/broker-ports.ts';
import { parsePassport } from '../../src/protocol/passport.ts';
import type { SigningKey } from '../../src/protocol/signing.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/strict-json.ts';
import { signedForm, softwareKeyProof, softwareKeysYaml } from '../support/broker/broker-callers.ts';
import {
  NOW_MS,
  newAuthority,
  passportKey,
  type TestBrokerOptions,
  testBroker,
  VALID,
} from '../support/broker/broker-fixture.ts';
import { AUTH_SITE, newSigningKey, ORIGIN, TRUST_DOMAIN } from '../support/fixtures/bundle-content.ts';
import { factsOfWire } from '../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, newSiteKeys, siteContent } from '../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../support/fixtures/test-verifier.ts';

const siteKeys = newSiteKeys();
const authority = newAuthority();
const svid = authority.issueSvid('/ns/prod/sa/billing', VALID);
const tls = { kind: 'tls' as const, clientCertificates: svid.chainDer, isResumed: false };
const options: TestBrokerOptions = {
  authorities: [authority],
  keys: [passportKey(siteKeys.broker, KEY_ID.broker)],
  settings: { servesProofs: true },
  connection: () => tls,
};
const BODY = Buffer.from('{"amount":1}');
const ORDER = {
  auth_site: AUTH_SITE,
  route_id: 'orders-write',
  audience: ORIGIN,
  proof: { kind: 'mtls' },
  request: {
    method: 'POST',
    url: `${ORIGIN}/v1/orders`,
    headers: [['X-Tenant', 'acme']],
    body_sha256: hash('sha256', BODY, 'base64url'),
  },
};

function headersOf(json: JsonObject): readonly { name: string; value: string }[] {
  const headers = isJsonObject(json.headers) ? json.headers : {};
  return Object.entries(headers).map(([name, value]) => ({ name: name.toLowerCase(), value: String(value) }));
}

const passportOf = (json: JsonObject) =>
  parsePassport(headersOf(json)[0]?.value.replace('Passport ', '') ?? '');

it('the verifier accepts the signed request', async () => {
  const broker = await testBroker(options);
  const { json } = await broker.post('/v1/proofs', ORDER);
  const facts = factsOfWire({
    method: 'POST',
    scheme: 'https',
    authority: 'api.shop.example',
    target: '/v1/orders',
    headers: [...headersOf(json), { name: 'x-tenant', value: 'acme' }],
    body: { kind: 'exact', bytes: BODY },
  });
  const snapshot = await compileSite(siteContent(siteKeys));
  expect(outcomeOf(checkNow(createTestVerifier({ snapshot }).verifier, facts))).toBe('allowed');
  const claims = passportOf(json)?.claims;
  expect(claims).toMatchObject({
    keyBinding: 'attested_workload',
    subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing`,
  });
  expect(broker.events).toMatchObject([{ operation: 'proof', outcome: 'issued', proof: 'mtls' }]);
});

it('keeps one holder key for a caller and renews its passport at two thirds', async () => {
  const broker = await testBroker(options);
  const first = passportOf((await broker.post('/v1/proofs', ORDER)).json);
  broker.clock.nowMs = NOW_MS + 199_000;
  const second = passportOf((await broker.post('/v1/proofs', ORDER)).json);
  broker.clock.nowMs = NOW_MS + 200_000;
  const third = passportOf((await broker.post('/v1/proofs', ORDER)).json);
  expect(second?.sha256).toBe(first?.sha256);
  expect(third?.sha256).not.toBe(first?.sha256);
  expect(third?.claims.holderJwk).toEqual(first?.claims.holderJwk);
});

it('gives no passport of one SVID to another SVID of the same ID, which ends sooner', async () => {
  const ending = authority.issueSvid('/ns/prod/sa/billing', {
    ...VALID,
    notAfterMs: NOW_MS + 60_000,
  });
  let shown = svid;
  const connection = () => ({ ...tls, clientCertificates: shown.chainDer });
  const broker = await testBroker({ ...options, connection });
  const first = passportOf((await broker.post('/v1/proofs', ORDER)).json);
  shown = ending;
  const second = passportOf((await broker.post('/v1/proofs', ORDER)).json);
  expect([first, second].map((one) => (one?.claims.expiresAtSeconds ?? 0) - NOW_MS / 1000)).toEqual([
    300, 60,
  ]);
});

it('stops at a holder key of its own that the operator denies, as the audit event names it', async () => {
  const denied = new Set<string | undefined>();
  const denyList = { deniesSubject: () => false, deniesThumbprint: (one: string) => denied.has(one) };
  const broker = await testBroker({ ...options, ports: { denyList } });
  expect((await broker.post('/v1/proofs', ORDER)).status).toBe(200);
  denied.add(broker.events[0]?.holder_thumbprint);
  expect((await broker.post('/v1/proofs', ORDER)).code).toBe('caller_denied');
});

it.each([
  'wrong',
  'https://API.shop.example/',
  'https://api.shop.example/a/../b',
  'https://api.shop.example/a#b',
])('does not sign the URL %s', async (url) => {
  const broker = await testBroker(options);
  const answer = await broker.post('/v1/proofs', { ...ORDER, request: { ...ORDER.request, url } });
  expect(answer.code).toBe('request_not_signable');
});

it.each([
  [['Authorization', 'x']],
  [
    ['a', 'x'],
    ['A', 'y'],
  ],
  [['a', 'x\ny']],
  [['x-proofgate-subject', 'y']],
] as const)('does not sign the headers %j', async (...headers) => {
  const broker = await testBroker(options);
  const answer = await broker.post('/v1/proofs', { ...ORDER, request: { ...ORDER.request, headers } });
  expect(answer.code).toBe('request_not_signable');
});

it('is off unless the operator turns it on', async () => {
  const broker = await testBroker({ ...options, settings: {} });
  expect(await broker.post('/v1/proofs', ORDER)).toMatchObject({ status: 404, code: 'proofs_not_served' });
});

it('needs client-certificate TLS, or the Unix socket', async () => {
  const askOver = async (connection: NonNullable<TestBrokerOptions['connection']>) => {
    const broker = await testBroker({ ...options, connection });
    const edits = { operation: 'proof', audience: ORIGIN } as const;
    const form = signedForm(await broker.challenge(), svid, newSigningKey(), edits);
    return (await broker.post('/v1/proofs', { ...ORDER, proof: form })).code;
  };
  expect(await askOver(() => ({ kind: 'unix_socket' }))).toBeUndefined();
  expect(await askOver(() => ({ kind: 'plain' }))).toBe('connection_not_direct');
  expect(await askOver(() => tls)).toBe('connection_not_direct');
  const resumed = await testBroker({ ...options, connection: () => ({ ...tls, isResumed: true }) });
  expect((await resumed.post('/v1/proofs', ORDER)).code).toBe('tls_session_resumed');
});

it('signs for a software key over TLS where the handshake proved that key', async () => {
  const registered = newSigningKey();
  const stranger = newSigningKey();
  const softwareKeys = softwareKeysYaml(registered);
  const certificateOf = (key: SigningKey) => [selfSignedDer(key)];
  const ask = async (connection: Connection, edits: object = {}, proofKey = registered) => {
    const broker = await testBroker({ ...options, softwareKeys, connection: () => connection });
    const text = { operation: 'proof', audience: ORIGIN, ...edits } as const;
    const proof = softwareKeyProof(await broker.challenge(), proofKey, undefined, text);
    const answer = await broker.post('/v1/proofs', { ...ORDER, proof });
    return answer.code ?? passportOf(answer.json)?.claims.subject;
  };
  const direct = { ...tls, clientCertificates: certificateOf(registered) };
  expect(await ask(direct)).toBe('ci:deploy');
  expect(await ask({ kind: 'unix_socket' })).toBe('ci:deploy');
  expect(await ask({ ...tls, clientCertificates: [] })).toBe('connection_not_direct');
  expect(await ask(tls)).toBe('connection_not_direct');
  expect(await ask({ ...direct, isResumed: true })).toBe('connection_not_direct');
  expect(await ask({ ...tls, clientCertificates: certificateOf(stranger) })).toBe('connection_not_direct');
  expect(await ask({ ...tls, clientCertificates: certificateOf(stranger) }, {}, stranger)).toBe(
    'key_not_registered',
  );
  expect(await ask(direct, { operation: 'passport' })).toBe('registered_signature_invalid');
});

function selfSignedDer({ privateKey }: SigningKey): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'pg-proofs-'));
  const keyFile = join(folder, 'key.pem');
  try {
    writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    const made = ['-key', keyFile, '-subj', '/CN=ci', '-days', '1', '-outform', 'DER'];
    return execFileSync('openssl', ['req', '-x509', ...made]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it('a signature for a passport gets no proof', async () => {
  const broker = await testBroker({ ...options, connection: () => ({ kind: 'unix_socket' }) });
  const form = signedForm(await broker.challenge(), svid, newSigningKey(), { audience: ORIGIN });
  expect((await broker.post('/v1/proofs', { ...ORDER, proof: form })).code).toBe('svid_signature_invalid');
});
