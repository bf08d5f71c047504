/**
 * One jti in two formats, at two verifiers with one Redis, at the same time: for every two formats exactly one request is allowed. The
 * holder key is the same, so no format or token gives a proof a second life.
 */
import { beforeAll, expect, it } from '@jest/globals';
import { newJti } from '../../../src/protocol/signing.ts';
import type { WireClient, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { signDpop, signedRequest, signHttp } from '../../support/site/signed-request.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { accessToken, STANDARD_ROUTES, TOKEN_ISSUERS } from '../../support/site/standard-routes.ts';
import { waitFor } from '../../support/wait.ts';
import { answerOf } from '../dpop/dpop-requests.ts';
import { startRecordedProxy } from '../proxy/proxy-fixture.ts';

const fixture = useSite('suite');
let points: readonly [WireClient, WireClient];

const common = () => ({ caller: derivedKeyCaller(fixture.site), route: STANDARD_ROUTES.read });
const FORMATS: { readonly [format: string]: (jti: string) => WireRequest } = {
  'a transcript': (jti) => signedRequest(fixture.site, { ...common(), transcript: { jti } }),
  'a keyed signature': (jti) => signHttp(fixture.site, { ...common(), message: { jti } }),
  'a signature with a passport': (jti) =>
    signHttp(fixture.site, { ...common(), hasPassport: true, message: { jti } }),
  'DPoP with a passport': (jti) => signDpop(fixture.site, { ...common(), proof: { jti } }),
  'DPoP with an access token': (jti) => {
    const token = accessToken(common().caller.holder.publicKey.thumbprint);
    return signDpop(fixture.site, { ...common(), token, proof: { jti } });
  },
};
const PAIRS = Object.keys(FORMATS).flatMap((first) => Object.keys(FORMATS).map((second) => [first, second]));

beforeAll(async () => {
  const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  fixture.stops.push(() => redis.stop());
  const moreRoutes = Object.values(STANDARD_ROUTES).filter(({ route_id }) => route_id !== 'standard-nonced');
  const bundleDirectory = await fixture.site.makeBundle({
    ...{ moreRoutes, oauthIssuers: TOKEN_ISSUERS },
    isSingleVerifier: false,
  });
  const start = async () => {
    const options = { bundleDirectory, replay: redis.url, flags: ['--redis-timeout', '800ms'] };
    const { address, stop } = await startRecordedProxy(fixture.site, options);
    fixture.stops.push(stop);
    const client = http1Client(address);
    await waitFor('an allowed request', async () => {
      const request = signedRequest(fixture.site, common());
      return (await answerOf(client, request)) === '200' || undefined;
    });
    return client;
  };
  points = [await start(), await start()];
});

it.each(PAIRS)('%s, and %s', async (first = '', second = '') => {
  const jti = newJti();
  const [one, other] = points;
  const requests = [first, second].map((format) => FORMATS[format]?.(jti)) as [WireRequest, WireRequest];
  const answers = await Promise.all([answerOf(one, requests[0]), answerOf(other, requests[1])]);
  expect(answers.sort()).toEqual(['200', '403 jti_replay']);
  expect(await answerOf(one, requests[1])).toBe('403 jti_replay');
});

it('pairs every format with each', () => {
  expect(PAIRS).toHaveLength(25);
});
