/** What a signer keeps between requests: its identity, and passports while they are valid. */
import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { RequestSigner, type SignerOptions } from '../../../src/caller/sign/request-signer.ts';
import type { SigningIdentity } from '../../../src/caller/sign/signing-identity.ts';
import { parsePassport } from '../../../src/protocol/passport.ts';
import { signPassport } from '../../../src/protocol/signing.ts';
import { parseTranscript, type Transcript } from '../../../src/protocol/transcript.ts';
import {
  credentialsOf,
  NOW_SECONDS,
  newEd25519Key,
  profilesOf,
  requestOf,
  routeDocument,
} from '../../support/caller/signing.ts';

const ORDERS = routeDocument();
const PAYMENTS = routeDocument({
  route_id: 'payments',
  path_template: '/v1/payments',
  method: 'POST',
  audience: 'https://payments.shop.example',
});
const INVOICES = routeDocument({ route_id: 'invoices', path_template: '/v1/invoices' });

function identityOf(members: Partial<SigningIdentity> = {}): SigningIdentity {
  return {
    key: newEd25519Key(),
    files: [profilesOf(ORDERS, PAYMENTS, INVOICES)],
    passports: undefined,
    ...members,
  };
}

class Clock {
  seconds = NOW_SECONDS;
  readonly nowMs = () => this.seconds * 1000 + 999;
}

function signerOf(identity: SigningIdentity | undefined, options: SignerOptions = {}) {
  const clock = new Clock();
  const signer = new RequestSigner({ nowMs: clock.nowMs, ...options });
  signer.replaceIdentity(identity);
  return { signer, clock };
}

interface Sent {
  readonly jws: string;
  readonly transcript: Transcript;
}

function sent(signer: RequestSigner, request: Parameters<RequestSigner['sign']>[0] = requestOf()): Sent {
  const signed = signer.sign(request);
  if (signed.kind === 'failed') throw new Error(signed.code);
  const { passport, transcript } = credentialsOf(signed);
  const read = parseTranscript(Buffer.from(transcript, 'base64url'), 'authorization');
  if (read === undefined) throw new Error('not a transcript');
  return { jws: passport, transcript: read };
}

function failureOf(signer: RequestSigner, request = requestOf()): string {
  const signed = signer.sign(request);
  return signed.kind === 'failed' ? signed.code : 'signed';
}

const INVOICE = requestOf({ url: 'https://api.shop.example/v1/invoices' });
const PAYMENT = requestOf({ method: 'POST', url: 'https://api.shop.example/v1/payments' });

describe('an own passport', () => {
  it('is reused until two thirds of its life', () => {
    const { signer, clock } = signerOf(identityOf());
    const first = sent(signer);
    expect(parsePassport(first.jws)?.claims).toMatchObject({
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 300,
    });
    clock.seconds += 199;
    expect(sent(signer).jws).toBe(first.jws);
    clock.seconds += 1;
    const next = sent(signer);
    expect(parsePassport(next.jws)?.claims.issuedAtSeconds).toBe(NOW_SECONDS + 200);
  });

  it('is new after the clock was set back', () => {
    const { signer, clock } = signerOf(identityOf());
    const first = sent(signer);
    clock.seconds -= 1;
    expect(sent(signer).jws).not.toBe(first.jws);
  });

  it('is the same for routes of one audience, and another for another audience', () => {
    const { signer } = signerOf(identityOf());
    expect(sent(signer, INVOICE).jws).toBe(sent(signer).jws);
    const payment = sent(signer, PAYMENT);
    expect(parsePassport(payment.jws)?.claims.audience).toBe('https://payments.shop.example');
  });

  it('is never of a replaced key', () => {
    const { signer } = signerOf(identityOf());
    sent(signer);
    const next = identityOf();
    signer.replaceIdentity(next);
    const { claims } = parsePassport(sent(signer).jws) ?? {};
    expect(claims?.holderJwk).toEqual(next.key.publicKey.jwk);
  });

  it('bounds the life of its proofs', () => {
    const { signer, clock } = signerOf(identityOf(), { passportTtlSeconds: 90 });
    expect(sent(signer).transcript.expiresAtSeconds).toBe(NOW_SECONDS + 60);
    clock.seconds += 59;
    expect(sent(signer).transcript.expiresAtSeconds).toBe(NOW_SECONDS + 90);
  });
});

describe("a broker's passport", () => {
  const broker = newEd25519Key();
  const key = newEd25519Key();
  const [file] = identityOf().files;
  const passport = (audience: string) =>
    signPassport(
      {
        ...{ keyId: 'broker-1', audience, issuedAtSeconds: NOW_SECONDS, expiresAtSeconds: NOW_SECONDS + 100 },
        issuer: file?.coordinates.issuer ?? '',
        subject: file?.coordinates.subject ?? '',
        trustDomain: file?.coordinates.trustDomain ?? '',
        ...{ keyBinding: 'software', holderJwk: key.publicKey.jwk },
      },
      broker,
    );
  const audience = 'https://api.shop.example';
  const passports = new Map([[audience, passport(audience)]]);

  it('is used to its end, and no longer', () => {
    const { signer, clock } = signerOf(identityOf({ key, passports }));
    expect(sent(signer).jws).toBe(passports.get(audience));
    clock.seconds += 99;
    const last = sent(signer);
    expect(last.jws).toBe(passports.get(audience));
    expect(last.transcript.expiresAtSeconds).toBe(NOW_SECONDS + 100);
    clock.seconds += 1;
    expect(failureOf(signer)).toBe('passport_expired');
  });

  it('is missing for an audience without one', () => {
    const { signer } = signerOf(identityOf({ key, passports }));
    expect(failureOf(signer, PAYMENT)).toBe('passport_required');
  });
});

describe('a signer', () => {
  it('signs nothing without an identity', () => {
    const { signer } = signerOf(undefined);
    expect(failureOf(signer)).toBe('identity_not_ready');
    expect(signer.profileFor(requestOf())).toMatchObject({ kind: 'failed', code: 'identity_not_ready' });
    signer.replaceIdentity(identityOf());
    expect(failureOf(signer)).toBe('signed');
    signer.replaceIdentity(undefined);
    expect(failureOf(signer)).toBe('identity_not_ready');
  });

  it('finds the profile before there is a body', () => {
    const { signer } = signerOf(identityOf());
    expect(signer.profileFor(PAYMENT)).toMatchObject({
      kind: 'found',
      profile: { routeId: 'payments', body: 'bound' },
      url: { target: '/v1/payments' },
    });
    const elsewhere = requestOf({ url: 'https://other.example/v1/orders/7' });
    expect(signer.profileFor(elsewhere)).toMatchObject({ kind: 'failed', code: 'origin_not_allowed' });
  });

  it.each(['', 'abc'])('signs the digest of a body as the body: %p', (text) => {
    const { signer } = signerOf(identityOf());
    const bytes = Buffer.from(text);
    const digest = { sha256: hash('sha256', bytes, 'base64url'), byteLength: bytes.byteLength };
    const ofBytes = sent(signer, { ...PAYMENT, body: bytes }).transcript;
    const ofDigest = sent(signer, { ...PAYMENT, body: digest }).transcript;
    expect(ofDigest.contentSha256).toBe(ofBytes.contentSha256);
  });

  it('signs the same bytes with the same clock and jti', () => {
    const identity = identityOf();
    const newJti = () => 'AAAAAAAAAAAAAAAAAAAAAA';
    const [one, two] = [signerOf(identity, { newJti }), signerOf(identity, { newJti })];
    expect(one.signer.sign(PAYMENT)).toMatchObject({ jti: 'AAAAAAAAAAAAAAAAAAAAAA' });
    expect(sent(one.signer, PAYMENT)).toEqual(sent(two.signer, PAYMENT));
  });

  it.each([0, 301, 1.5, Number.NaN])('refuses passports of %p seconds', (passportTtlSeconds) => {
    expect(() => new RequestSigner({ passportTtlSeconds })).toThrow(
      expect.objectContaining({ code: 'ttl_out_of_range' }),
    );
  });
});
