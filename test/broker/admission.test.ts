/** What the broker refuses to callers that proved who they are, and how long their passports live. */
import { describe, expect, it } from '@jest/globals';
import { DEFAULT_BROKER_LIMITS } from '../../src/broker/broker-ports.ts';
import { parsePassport } from '../../src/protocol/passport.ts';
import { signedForm, softwareKeyProof, softwareKeysYaml } from '../support/broker/broker-callers.ts';
import {
  type Answer,
  NOW_MS,
  newAuthority,
  passportKey,
  type TestBroker,
  type TestBrokerOptions,
  testBroker,
  VALID,
} from '../support/broker/broker-fixture.ts';
import { NOW_SECONDS, newSigningKey, TRUST_DOMAIN } from '../support/fixtures/bundle-content.ts';

const authority = newAuthority();
const registered = newSigningKey();
const options: TestBrokerOptions = { authorities: [authority], softwareKeys: softwareKeysYaml(registered) };

const asSoftware = async (broker: TestBroker, fresh = registered) =>
  broker.passport(
    softwareKeyProof(await broker.challenge(), registered, fresh === registered ? undefined : fresh),
  );

async function asWorkload(broker: TestBroker, holder = newSigningKey(), path = '/orders') {
  const svid = authority.issueSvid(path, VALID);
  return broker.passport(signedForm(await broker.challenge(), svid, holder));
}

function lifeOf({ json }: Answer): readonly [issuedAt: number | undefined, expiresAt: number | undefined] {
  const claims = parsePassport(String(json.passport))?.claims;
  return [claims?.issuedAtSeconds, claims?.expiresAtSeconds];
}

describe('a passport ends', () => {
  it('after --passport-ttl', async () => {
    const answer = await asWorkload(await testBroker({ ...options, settings: { passportTtlSeconds: 90 } }));
    expect(lifeOf(answer)).toEqual([NOW_SECONDS, NOW_SECONDS + 90]);
    expect(answer.json.expires_at).toBe(new Date(NOW_MS + 90_000).toISOString().replace('.000', ''));
  });

  it("with the caller's credential", async () => {
    const broker = await testBroker(options);
    const svid = authority.issueSvid('/orders', { ...VALID, notAfterMs: NOW_MS + 70_000 });
    const answer = await broker.passport(signedForm(await broker.challenge(), svid, newSigningKey()));
    expect(lifeOf(answer)).toEqual([NOW_SECONDS, NOW_SECONDS + 70]);
  });

  it("with the authority of the caller's credential", async () => {
    const broker = await testBroker(options);
    const svid = authority
      .issueIntermediate({ ...VALID, notAfterMs: NOW_MS + 40_000 })
      .issueSvid('/orders', VALID);
    const answer = await broker.passport(signedForm(await broker.challenge(), svid, newSigningKey()));
    expect(lifeOf(answer)).toEqual([NOW_SECONDS, NOW_SECONDS + 40]);
  });

  it("after the registered key's own longest life", async () => {
    const softwareKeys = softwareKeysYaml(registered, 'ci:deploy', '    max_passport_ttl_seconds: 30\n');
    const answer = await asSoftware(await testBroker({ ...options, softwareKeys }));
    expect(lifeOf(answer)).toEqual([NOW_SECONDS, NOW_SECONDS + 30]);
  });

  it('never at once: a credential that ends within the second gets none', async () => {
    const broker = await testBroker(options);
    const svid = authority.issueSvid('/orders', { ...VALID, notAfterMs: NOW_MS });
    const proof = signedForm(await broker.challenge(), svid, newSigningKey());
    expect((await broker.passport(proof)).code).toBe('credential_ending');
  });
});

describe('the deny list names', () => {
  const denied = async (denyList: string, ask: (broker: TestBroker) => Promise<Answer>) =>
    (await ask(await testBroker({ ...options, denyList }))).code;

  it('a subject', async () => {
    const list = `subjects: ['spiffe://${TRUST_DOMAIN}/orders', 'ci:deploy']`;
    expect(await denied(list, asWorkload)).toBe('caller_denied');
    expect(await denied(list, asSoftware)).toBe('caller_denied');
    expect(await denied(list, (broker) => asWorkload(broker, newSigningKey(), '/orders2'))).toBeUndefined();
  });

  it('a prefix of subjects', async () => {
    const list = `subject_prefixes: ['spiffe://${TRUST_DOMAIN}/ns/old/']`;
    expect(await denied(list, (broker) => asWorkload(broker, newSigningKey(), '/ns/old/a'))).toBe(
      'caller_denied',
    );
    expect(await denied(list, (broker) => asWorkload(broker, newSigningKey(), '/ns/older'))).toBeUndefined();
  });

  it('a holder key, a registered key or the key of an SVID', async () => {
    const holder = newSigningKey();
    const listOf = (thumbprint: string) => `thumbprints: [${thumbprint}]`;
    expect(await denied(listOf(holder.publicKey.thumbprint), (broker) => asWorkload(broker, holder))).toBe(
      'caller_denied',
    );
    const list = listOf(registered.publicKey.thumbprint);
    expect(await denied(list, (broker) => asSoftware(broker, newSigningKey()))).toBe('caller_denied');
  });
});

describe('a trust domain', () => {
  it('without a signing key is not served', async () => {
    const keys = [passportKey(newSigningKey(), 'b-1', 'other.example')];
    expect((await asWorkload(await testBroker({ ...options, keys }))).code).toBe('trust_domain_not_served');
  });

  it('has a key of its own', async () => {
    const other = newAuthority('other.example');
    const keys = [
      passportKey(newSigningKey(), 'k-shop'),
      passportKey(newSigningKey('ES256'), 'k-other', 'other.example'),
    ];
    const broker = await testBroker({ authorities: [authority, other], keys });
    expect((await asWorkload(broker)).json).toMatchObject({ key_id: 'k-shop', trust_domain: TRUST_DOMAIN });
    const svid = other.issueSvid('/orders', VALID);
    const answer = await broker.passport(signedForm(await broker.challenge(), svid, newSigningKey()));
    expect(answer.json).toMatchObject({ key_id: 'k-other', trust_domain: 'other.example' });
    expect(parsePassport(String(answer.json.passport))?.algorithm).toBe('ES256');
  });
});

describe('limits', () => {
  const limited = (limits: Partial<typeof DEFAULT_BROKER_LIMITS>) =>
    testBroker({ ...options, settings: { limits: { ...DEFAULT_BROKER_LIMITS, ...limits } } });

  it('eight holder keys an identity in five minutes', async () => {
    const broker = await limited({});
    for (let i = 0; i < 8; i++) {
      expect((await asWorkload(broker)).status).toBe(200);
      broker.clock.nowMs += 1000;
    }
    expect(await asWorkload(broker)).toMatchObject({ code: 'holder_key_limit', retryAfter: '292' });
    expect((await asWorkload(broker, newSigningKey(), '/billing')).status).toBe(200);
    broker.clock.nowMs = NOW_MS + 300_000;
    expect((await asWorkload(broker)).status).toBe(200);
  });

  it('not the same key again', async () => {
    const broker = await limited({ holderKeysPerIdentity: 1 });
    expect((await asSoftware(broker)).status).toBe(200);
    expect((await asSoftware(broker)).status).toBe(200);
    expect((await asSoftware(broker, newSigningKey())).code).toBe('holder_key_limit');
  });

  it('requests of an identity in a second', async () => {
    const broker = await limited({ requestsPerSecondPerIdentity: 3 });
    const codes = [];
    for (let i = 0; i < 4; i++) codes.push((await asSoftware(broker)).code);
    expect(codes).toEqual([undefined, undefined, undefined, 'rate_limited']);
    broker.clock.nowMs += 1000;
    expect((await asSoftware(broker)).status).toBe(200);
  });

  it('requests of an address in a second, but not on a Unix socket', async () => {
    const limits = { ...DEFAULT_BROKER_LIMITS, requestsPerSecondPerAddress: 2 };
    const flood = async (broker: TestBroker) => {
      const answers = await Promise.all(Array.from({ length: 6 }, () => broker.post('/v1/challenges')));
      return answers.filter(({ code }) => code === 'rate_limited');
    };
    const refused = await flood(await testBroker({ settings: { limits } }));
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused[0]?.retryAfter).toBe('1');
    const local = await testBroker({ settings: { limits }, connection: () => ({ kind: 'unix_socket' }) });
    expect(await flood(local)).toEqual([]);
  });
});

describe('a signing key', () => {
  const signingWith = (sign: () => Promise<Uint8Array>) =>
    testBroker({ ...options, keys: [{ ...passportKey(newSigningKey(), 'b-1'), sign }] });

  it('that does not answer gives no passport', async () => {
    const broker = await signingWith(() => Promise.reject(new Error('the KMS is away')));
    expect(await asSoftware(broker)).toMatchObject({
      status: 503,
      code: 'signing_unavailable',
      retryAfter: '1',
    });
  });

  it('that answers with something else gives no passport', async () => {
    const broker = await signingWith(async () => new Uint8Array(72));
    expect((await asSoftware(broker)).code).toBe('signing_unavailable');
  });
});
