/** Checks that a verifier accepts the requests that the client signs, and rejects proofs for other requests. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { RequestToSign } from '../../../src/caller/sign/request-signer.ts';
import { signPassport } from '../../../src/protocol/signing.ts';
import { parseSigningProfiles } from '../../../src/protocol/signing-profile-file.ts';
import { decide } from '../../../src/verifier/decision/decide.ts';
import { createPassportCache } from '../../../src/verifier/decision/facts/passport-cache.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { factsOf, requestOf, type Signer, signRequest } from '../../support/caller/signing.ts';
import {
  AUTH_SITE,
  BROKER_ISSUER,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
  ORIGIN,
  TRUST_DOMAIN,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const content = bundleContent(keys);
const [client] = content.clients ?? [];
const [derived] = content.derived_keys ?? [];

let snapshot: Snapshot | undefined;
beforeAll(async () => {
  snapshot = await compileBundle(content, { file: 'bundle', head: 'A'.repeat(43) });
});

/** Profiles derived from the routes of the bundle. */
function profilesFor(coordinates: object) {
  const profiles = content.routes.map(
    ({ route_id, method, path_template, audience, signed_headers = [] }) => ({
      route_id,
      method,
      path_template,
      audience,
      origins: content.origins,
      signed_headers,
    }),
  );
  return parseSigningProfiles(JSON.stringify({ auth_site: AUTH_SITE, ...coordinates, profiles }), 'profile');
}

function derivedSigner(members: Partial<Signer> = {}): Signer {
  return {
    profiles: profilesFor({
      key_id: derived?.key_id,
      issuer: client?.issuer,
      trust_domain: client?.trust_domain,
      subject: client?.subject,
      key_binding: 'software',
    }),
    holderKey: keys.derived,
    brokerPassport: undefined,
    ttlSeconds: 60,
    nowSeconds: NOW_SECONDS,
    ...members,
  };
}

function verdictOn(facts: RequestFacts, nowSeconds = NOW_SECONDS) {
  const inputs = { nowSeconds, realtimeStalenessSeconds: 10, passports: createPassportCache() };
  const verdict = decide(facts, snapshot, inputs, {});
  return verdict.kind === 'verified' ? 'verified' : `${verdict.reason} ${verdict.detail}`;
}

describe('a signed request', () => {
  const read = requestOf({ url: `${ORIGIN}/v1/orders/7?full=%2f..` });
  const write = requestOf({ method: 'POST', url: `${ORIGIN}/v1/orders`, body: Buffer.from('{"item":1}') });
  const signed = (request: RequestToSign, signer = derivedSigner()) =>
    factsOf(request, signRequest(request, signer));

  it('of a derived key is verified, to the last second and no longer', () => {
    expect(verdictOn(signed(write))).toBe('verified');
    const facts = signed(read);
    expect(verdictOn(facts)).toBe('verified');
    expect(verdictOn(facts, NOW_SECONDS + 64)).toBe('verified');
    expect(verdictOn(facts, NOW_SECONDS + 65)).toMatch(/^invalid_request_proof .*_expired$/);
  });

  it('with more headers signed is verified with just these', () => {
    const request = {
      ...read,
      headers: [{ name: 'If-Match', value: '"7"' }],
      signHeaders: ['if-match'],
    };
    const signedRequest = signRequest(request, derivedSigner());
    expect(verdictOn(factsOf(request, signedRequest))).toBe('verified');
    const other = { ...request, headers: [{ name: 'If-Match', value: '"8"' }] };
    expect(verdictOn(factsOf(other, signedRequest))).toBe('request_binding_mismatch header.if-match');
  });

  it('is for that body and that target', () => {
    const signedRequest = signRequest(write, derivedSigner());
    const other = { ...write, body: Buffer.from('{"item":2}') };
    expect(verdictOn(factsOf(other, signedRequest))).toBe('request_binding_mismatch content-sha256');
    const facts = { ...signed(read), target: '/v1/orders/8' };
    expect(verdictOn(facts)).toBe('request_binding_mismatch target');
  });

  it('with the passport of a broker is verified', () => {
    const holderKey = newSigningKey('ES256');
    const subject = `spiffe://${TRUST_DOMAIN}/ns/prod/billing`;
    const profiles = profilesFor({
      issuer: BROKER_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject,
      key_binding: 'attested_workload',
    });
    const [route] = content.routes;
    const claims = {
      keyId: 'broker-1',
      issuer: BROKER_ISSUER,
      subject,
      trustDomain: TRUST_DOMAIN,
      audience: route?.audience ?? '',
      issuedAtSeconds: NOW_SECONDS - 60,
      expiresAtSeconds: NOW_SECONDS + 120,
      keyBinding: 'attested_workload',
      holderJwk: holderKey.publicKey.jwk,
    } as const;
    const brokerPassport = signPassport(claims, keys.broker);
    const verdict = verdictOn(signed(read, derivedSigner({ profiles, holderKey, brokerPassport })));
    expect(verdict).toBe('verified');
  });
});
