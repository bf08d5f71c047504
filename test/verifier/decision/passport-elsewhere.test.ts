/** On routes with `passport_header` the API gets `Authorization`: a passport there is refused, whatever its scheme and place. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { linesFacts } from '../../support/fixtures/header-lines.ts';
import { compileHttpSite, httpSiteKeys as keys } from '../../support/fixtures/http-signature-site.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { KEY_ID } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { signHttp } from '../../support/protocol/http-signer.ts';

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await compileHttpSite();
});

const passport = () => signRequest(keys, { caller: 'billing', route: 'orders-read' }).jws;
const decide = (facts: Parameters<typeof checkNow>[1]) =>
  outcomeOf(checkNow(createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS }).verifier, facts));

function withTranscript(authorization: string): string {
  const { facts } = signRequest(
    keys,
    { caller: 'billing', route: 'bearer' },
    {
      received: (wire) => ({
        ...wire,
        headers: wire.headers.map((line) =>
          line.name === 'authorization' ? { ...line, value: authorization } : line,
        ),
      }),
    },
  );
  return decide({ ...facts, removesProofs: true });
}

async function withSignature(authorization: string): Promise<string> {
  const url = `${ORIGIN}/v1/bearer`;
  const options = {
    key: keys.billing,
    keyId: KEY_ID.billing,
    authSite: AUTH_SITE,
    createdSeconds: NOW_SECONDS,
  };
  const signed = await signHttp({ method: 'GET', url, headers: {} }, options);
  return decide(linesFacts('GET', url, { ...signed, authorization }));
}

describe.each([
  ['a transcript', withTranscript],
  ['an HTTP message signature', withSignature],
])('with %s', (_, outcome) => {
  it.each<[string, (jws: string) => string]>([
    ['a DPoP token', (jws) => `DPoP ${jws}`],
    ['a bearer', (jws) => `Bearer ${jws}`],
    ['a bearer in other capitals', (jws) => `bEARER  ${jws}`],
    ['the whole value', (jws) => jws],
    ['a parameter', (jws) => `GNAP token="${jws}", x=1`],
    ['a second value', (jws) => `Bearer a.b.c, DPoP ${jws}`],
    ['a passport', (jws) => `Passport ${jws}`],
  ])('denies it as %s', async (_name, write) => {
    expect(await outcome(write(passport()))).toBe('invalid_request_proof/passport_repeated 401');
  });

  it.each(['DPoP of.the.application', 'Bearer eyJhbGciOiJSUzI1NiJ9.e30.AAAA', 'Basic eDp5', ''])(
    'allows %j',
    async (authorization) => {
      expect(await outcome(authorization)).toBe('allowed');
    },
  );
});
