/**
 * Access tokens of an OAuth authorization server through a real Envoy and the reverse proxy, with a real Redis: with a DPoP proof
 * alone, and a key of one namespace never counts in another.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { headerValues, type WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { type IssuerSigner, makeSigner, signCompact } from '../../support/fixtures/token-signer.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import type { Gateway } from '../../support/site/gateway.ts';
import { newHolder, nowSeconds, TRUST_DOMAIN } from '../../support/site/site.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { startRecordedProxy } from '../proxy/proxy-fixture.ts';
import { answerOf, EITHER, EITHER_TARGET, READ, type Requests, requestsOf } from './dpop-requests.ts';

const fixture = useSite('suite');
const ISSUER = 'https://login.shop.example/realms/shop';
const signers = (['RS256', 'PS256', 'ES256', 'Ed25519'] as const).map((algorithm) => makeSigner(algorithm));
const [rs256 = makeSigner('RS256')] = signers;
let bundleDirectory = '';
let redis: TestRedisServer;
let requests: Requests;
let holder: SigningKey;
beforeAll(async () => {
  requests = requestsOf(fixture.site);
  holder = newHolder(fixture.site.secrets);
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  fixture.stops.push(() => redis.stop());
  const keys = signers.map(({ algorithm: alg, kid, publicKey }) => ({
    ...{ kid, alg, jwk: publicKey.export({ format: 'jwk' }) },
  }));
  const server = { issuer: ISSUER, trust_domain: TRUST_DOMAIN, keys };
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, EITHER], oauthIssuers: [server] });
});

function tokenOf(signer: IssuerSigner = rs256, claims: object = {}, header: object = {}): string {
  const iat = nowSeconds();
  return signCompact(
    { typ: 'at+jwt', alg: signer.algorithm, kid: signer.kid, ...header },
    {
      ...{ iss: ISSUER, sub: 'orders', aud: READ.audience, iat, exp: iat + 300 },
      ...{ client_id: 'orders', cnf: { jkt: holder.publicKey.thumbprint }, ...claims },
    },
    signer,
  );
}

const request = (token: string, change: object = {}) =>
  requests.dpopRequest({ token, proof: { key: holder }, ...change });

const PROXY = 'the reverse proxy';

async function startPoint(name: string): Promise<{ client: WireClient; upstream: Gateway['upstream'] }> {
  const options = { bundleDirectory, replay: redis.url, flags: ['--redis-timeout', '800ms'] };
  if (name !== PROXY) {
    const { client, upstream } = await fixture.gateway(name, await fixture.verifier(options));
    return { client: client('HTTP/1.1'), upstream };
  }
  const { address, stop, upstream } = await startRecordedProxy(fixture.site, options);
  fixture.stops.push(stop);
  return { client: http1Client(address), upstream };
}

describe.each([...envoyVersions.slice(-1), PROXY])('%s', (name) => {
  let point: Awaited<ReturnType<typeof startPoint>>;
  beforeAll(async () => {
    point = await startPoint(name);
    await waitFor('an allowed request', async () => {
      return (await answerOf(point.client, requests.dpopRequest())) === '200' || undefined;
    });
  });

  it('forwards a caller of each algorithm, without its token', async () => {
    for (const signer of signers) {
      point.upstream.clear();
      expect(await answerOf(point.client, request(tokenOf(signer)))).toBe('200');
      const lines = point.upstream.requests[0]?.headers ?? [];
      expect(headerValues(lines, 'x-proofgate-subject')).toEqual(['sub:orders']);
      expect(headerValues(lines, 'x-proofgate-issuer')).toEqual([ISSUER]);
      expect([headerValues(lines, 'authorization'), headerValues(lines, 'dpop')]).toEqual([[], []]);
    }
  });

  it('denies every other use', async () => {
    point.upstream.clear();
    const broker = fixture.site.issuerKeys['broker-1'];
    const asServer = { ...makeSigner('Ed25519'), kid: 'broker-1', privateKey: broker.privateKey };
    const PROOF = '401 invalid_request_proof/';
    const attacks: readonly (readonly [string, string, object, string])[] = [
      ['a bearer', tokenOf(), { scheme: 'Bearer' }, `${PROOF}authorization_scheme`],
      ['a passport', tokenOf(), { scheme: 'Passport', ...EITHER_TARGET }, `${PROOF}proof_ambiguous`],
      [
        "a thief's proof",
        tokenOf(),
        { proof: { key: newHolder(fixture.site.secrets) } },
        `${PROOF}proof_key`,
      ],
      ['no binding', tokenOf(rs256, { cnf: undefined }), {}, `${PROOF}passport_malformed`],
      [
        'a forged token',
        tokenOf({ ...makeSigner('RS256'), kid: rs256.kid }),
        {},
        `${PROOF}passport_signature`,
      ],
      ["a broker's key", tokenOf(asServer), {}, `${PROOF}key_unknown`],
      ['an ID token', tokenOf(rs256, {}, { typ: 'JWT' }), {}, `${PROOF}claims_not_allowed`],
      [
        'a key address',
        tokenOf(rs256, {}, { jku: 'https://evil.example' }),
        {},
        `${PROOF}passport_malformed`,
      ],
      ['another issuer', tokenOf(rs256, { iss: 'https://evil.example' }), {}, `${PROOF}key_unknown`],
      ['another audience', tokenOf(rs256, { aud: 'account' }), {}, '403 invalid_request_proof/audience'],
      [
        'an old token',
        tokenOf(rs256, { iat: 1_700_000_000, exp: 1_700_000_100 }),
        {},
        `${PROOF}passport_expired`,
      ],
    ];
    for (const [what, token, change, answer] of attacks) {
      expect([what, await answerOf(point.client, request(token, change))]).toEqual([what, answer]);
    }
    expect(point.upstream.requests).toEqual([]);
  });

  it('lets each proof pass once', async () => {
    const sent = request(tokenOf());
    expect([await answerOf(point.client, sent), await answerOf(point.client, sent)]).toEqual([
      '200',
      '403 jti_replay',
    ]);
  });
});
