/** Audit events, metrics, profiles, discovery and configuration files. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import Schema from 'typebox/schema';
import { parseDenyList } from '../../src/broker/deny-list.ts';
import { parseSoftwareKeys } from '../../src/broker/software-keys.ts';
import { importPublicJwk } from '../../src/protocol/import-public-key.ts';
import { signedForm, softwareKeyProof, softwareKeysYaml } from '../support/broker/broker-callers.ts';
import {
  AUDIENCE,
  BROKER_URL,
  newAuthority,
  passportKey,
  type TestBroker,
  testBroker,
  VALID,
} from '../support/broker/broker-fixture.ts';
import { BROKER_ISSUER, newSigningKey, TRUST_DOMAIN } from '../support/fixtures/bundle-content.ts';

const registered = newSigningKey();
const softwareKeys = softwareKeysYaml(registered);
const asSoftware = async (broker: TestBroker) =>
  broker.passport(softwareKeyProof(await broker.challenge(), registered));

const eventSchema = JSON.parse(
  readFileSync(new URL('../../docs/reference/schema/broker-event.schema.json', import.meta.url), 'utf8'),
);

describe('the audit trail', () => {
  it('has one event for a passport, without a credential in it', async () => {
    const broker = await testBroker({ softwareKeys });
    const { json } = await asSoftware(broker);
    expect(broker.events).toEqual([
      {
        event: 'proofgate.broker',
        time: new Date(broker.clock.nowMs).toISOString(),
        request_id: expect.stringMatching(/^req_/),
        operation: 'passport',
        outcome: 'issued',
        proof: 'software_key',
        remote_address: '127.0.0.1',
        audience: AUDIENCE,
        issuer: BROKER_ISSUER,
        trust_domain: TRUST_DOMAIN,
        subject: 'ci:deploy',
        key_binding: 'software',
        credential_sha256: expect.any(String),
        holder_thumbprint: registered.publicKey.thumbprint,
        key_id: 'broker-1',
        passport_id: JSON.parse(
          Buffer.from(String(json.passport).split('.')[1] ?? '', 'base64url').toString(),
        ).jti,
        expires_at: json.expires_at,
      },
    ]);
    expect(JSON.stringify(broker.events)).not.toContain(String(json.passport).split('.')[2]);
  });

  it('has one event for a refusal, with the caller as far as it was verified', async () => {
    const broker = await testBroker({ softwareKeys, denyList: 'subjects: [ci:deploy]' });
    await asSoftware(broker);
    await broker.passport(softwareKeyProof(await broker.challenge(), newSigningKey()));
    expect(broker.events).toMatchObject([
      { outcome: 'refused', code: 'caller_denied', subject: 'ci:deploy' },
      { outcome: 'refused', code: 'key_not_registered' },
    ]);
    expect(broker.events[1]?.subject).toBeUndefined();
    await asSoftware(
      await testBroker({
        softwareKeys,
        ports: { audit: { record: (event) => broker.events.push(event) > 0 } },
      }),
    );
    const compiled = Schema.Compile(eventSchema);
    const written: unknown[] = broker.events.map((event) => JSON.parse(JSON.stringify(event)));
    expect(written.map((event) => compiled.Check(event))).toEqual([true, true, true]);
    expect(Object.keys(eventSchema.properties)).toEqual(
      expect.arrayContaining(Object.keys(Object.assign({}, ...written))),
    );
  });

  it('that cannot be written gives no passport', async () => {
    const broker = await testBroker({ softwareKeys, ports: { audit: { record: () => false } } });
    expect(await asSoftware(broker)).toMatchObject({ status: 503, code: 'audit_unavailable' });
    const metrics = await broker.registry.metrics();
    expect(metrics).toContain('outcome="audit_unavailable"} 1');
  });
});

it('counts decisions and requests', async () => {
  const broker = await testBroker({ softwareKeys });
  await asSoftware(broker);
  await broker.passport({ kind: 'mtls' });
  await broker.get('/v1/nothing');
  const metrics = await broker.registry.metrics();
  for (const line of [
    'proofgate_broker_decisions_total{operation="passport",proof="software_key",outcome="issued"} 1',
    'proofgate_broker_decisions_total{operation="passport",proof="mtls",outcome="client_certificate_missing"} 1',
    'proofgate_broker_requests_total{route="/v1/passports",method="POST",status="200"} 1',
    'proofgate_broker_requests_total{route="none",method="GET",status="404"} 1',
  ]) {
    expect(metrics).toContain(line);
  }
});

it('serves the profiles that fit the caller exactly', async () => {
  const authority = newAuthority();
  const asked: unknown[] = [];
  const signingProfiles = {
    fitting: (...caller: unknown[]) => {
      asked.push(caller);
      return [{ format: 'proofgate.signing-profile/v1' }];
    },
  };
  const broker = await testBroker({ authorities: [authority], ports: { signingProfiles } });
  const svid = authority.issueSvid('/orders', VALID);
  const edits = { operation: 'profiles', audience: '-' } as const;
  const proof = signedForm(await broker.challenge(), svid, newSigningKey(), edits);
  const { json } = await broker.post('/v1/profiles', { proof });
  expect(json).toEqual({ profiles: [{ format: 'proofgate.signing-profile/v1' }] });
  expect(asked).toEqual([[BROKER_ISSUER, TRUST_DOMAIN, `spiffe://${TRUST_DOMAIN}/orders`]]);
  expect((await broker.passport(proof)).code).toBe('svid_signature_invalid');
});

it('publishes every key, the next ones too', async () => {
  const keys = [
    passportKey(newSigningKey(), 'now'),
    passportKey(newSigningKey('ES256'), 'next'),
    passportKey(newSigningKey(), 'other', 'other.example'),
  ];
  const broker = await testBroker({ keys });
  const { json } = await broker.get('/jwks.json');
  const published = json.keys as { kid: string; alg: string; use: string; trust_domain: string }[];
  expect(published.map(({ kid, alg, use, trust_domain }) => [kid, alg, use, trust_domain])).toEqual([
    ['now', 'Ed25519', 'sig', TRUST_DOMAIN],
    ['next', 'ES256', 'sig', TRUST_DOMAIN],
    ['other', 'Ed25519', 'sig', 'other.example'],
  ]);
  const thumbprints = published.map(
    ({ kid: _k, alg: _a, use: _u, trust_domain: _t, ...jwk }) => importPublicJwk(jwk)?.thumbprint,
  );
  expect(thumbprints).toEqual(keys.map(({ publicKey }) => publicKey.thumbprint));
  expect((await broker.get('/.well-known/proofgate-broker')).json).toEqual({
    issuer: BROKER_ISSUER,
    jwks_uri: `${BROKER_URL}/jwks.json`,
    trust_domains: [TRUST_DOMAIN, 'other.example'],
    proofs: ['mtls', 'signed_form', 'jwt_svid', 'software_key'],
    algorithms: ['Ed25519', 'ES256'],
    max_passport_ttl_seconds: 300,
    serves_proofs: false,
  });
});

describe('answers to malformed requests', () => {
  it.each([
    ['/v1/passports', '{', 400, 'request_malformed'],
    ['/v1/passports', '{"audience":"a","audience":"b","proof":{"kind":"mtls"}}', 400, 'request_malformed'],
    ['/v1/passports', '{"audience":"a"}', 400, 'request_malformed'],
    ['/v1/passports', '{"audience":"a b","proof":{"kind":"mtls"}}', 400, 'request_malformed'],
    ['/v1/passports', '{"audience":"a","proof":{"kind":"spiffe"}}', 400, 'request_malformed'],
    ['/v1/passports?x=1', '{"audience":"a","proof":{"kind":"mtls"}}', 400, 'request_malformed'],
    ['/v1/passports', `"${'a'.repeat(70_000)}"`, 413, 'request_too_large'],
    ['/v1/challenges', '{}', 400, 'request_malformed'],
    ['/v1/other', '{}', 404, 'not_found'],
    ['/jwks.json', '{}', 405, 'method_not_allowed'],
  ])('%s %s', async (path, body, status, code) => {
    const broker = await testBroker();
    expect(await broker.post(path, body)).toMatchObject({ status, code });
    expect(broker.events).toEqual([]);
  });
});

describe('files', () => {
  const thumbprint = registered.publicKey.thumbprint;
  const entry = (members: string) =>
    `keys:\n  - {thumbprint: ${thumbprint}, trust_domain: a.example, ${members}}`;

  it.each([
    ['{}', /keys/],
    [entry('subject: "spiffe://a.example/x"'), /^keys\.0\.subject: must not begin with spiffe:/],
    [entry('subject: "SPIFFE:x"'), /^keys\.0\.subject: must not begin with spiffe:/],
    [entry('subject: x, admin: true'), /^keys\.0\.admin: unknown member$/],
    [entry('subject: "x y"'), /^keys\.0\.subject: must be 1 to 512 visible ASCII characters/],
    [
      'keys: [{thumbprint: abc, trust_domain: A, subject: x}]',
      /^keys\.0\.trust_domain: must be a trust domain/,
    ],
    ['keys: [{}]', /^keys\.0\.thumbprint: missing$/],
    ['', /^the file must be object$/],
    [entry('subject: x, max_passport_ttl_seconds: 301'), /max_passport_ttl_seconds/],
    [`${entry('subject: x')}\n  - {thumbprint: ${thumbprint}, trust_domain: a, subject: y}`, /occurs twice/],
    ['keys: [{thumbprint: abc, trust_domain: a, subject: x}]', /^keys\.0\.thumbprint: must be an RFC 7638/],
    ['keys: [', /^line 1/],
  ])('software keys %s', (text, message) => {
    expect(() => parseSoftwareKeys(text)).toThrow(message);
  });

  it.each([
    ['subject: [a]', /subject|additional/],
    ['subjects: ["spiffe://a.example/x/"]', /^subjects\.0: must be a canonical SPIFFE ID/],
    [
      'subject_prefixes: ["spiffe://a.example/x"]',
      /^subject_prefixes\.0: a prefix of SPIFFE IDs must end with/,
    ],
    ['thumbprints: [abc]', /^thumbprints\.0: must be an RFC 7638/],
    ['', /./],
  ])('deny list %s', (text, message) => {
    expect(() => parseDenyList(text)).toThrow(message);
  });
});
