/** Keys of an authorization server over real TLS: where they are found, and which of them a bundle may hold. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { fetchOAuthKeys } from '../../../src/control/issuers/fetch-oauth-keys.ts';
import { importTokenKey } from '../../../src/protocol/token-key.ts';
import { IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { makeSigner } from '../../support/fixtures/token-signer.ts';

const NOT_FOUND = { kind: 'status', status: 404 } as const;
let environment: IssuerEnvironment;
let server: ServiceAccountIssuer;
beforeAll(async () => {
  environment = await IssuerEnvironment.start();
});
afterAll(() => environment.close());
beforeEach(async () => {
  server = await environment.issuer({ path: '/realms/shop' });
});

const fetched = (change: { readonly issuer?: string; readonly jwksUrl?: string } = {}) =>
  fetchOAuthKeys({ issuer: server.issuer, jwksUrl: undefined, ...change }, environment.fetcher(), () => 7);

async function kids(change?: Parameters<typeof fetched>[0]): Promise<readonly string[] | string> {
  const answer = await fetched(change);
  return answer.kind === 'failed' ? answer.code : answer.keys.map(({ kid }) => kid);
}

it('are found by OpenID discovery, and else by RFC 8414, whose path stands in front of that of the issuer', async () => {
  expect(await kids()).toEqual([server.signer.kid]);
  expect(server.requests).toMatchObject({ discovery: 1, metadata: 0, other: 0 });
  server.setFault('discovery', NOT_FOUND);
  expect(await kids()).toEqual([server.signer.kid]);
  expect(server.requests).toMatchObject({ discovery: 2, metadata: 1, other: 0 });
  server.setFault('metadata', NOT_FOUND);
  expect(await kids()).toBe('http_status');
});

it('are found for an issuer of the greatest length', async () => {
  const { origin } = new URL(server.issuer);
  const long = await environment.issuer({ path: `/${'x'.repeat(512 - origin.length - 1)}` });
  expect(long.issuer).toHaveLength(512);
  long.setFault('discovery', NOT_FOUND);
  long.discoveryOverrides = { jwks_uri: server.jwksUri };
  expect(await kids({ issuer: long.issuer })).toEqual([server.signer.kid]);
});

it('are never those of metadata for another issuer', async () => {
  server.discoveryOverrides = { issuer: `${server.issuer}/` };
  expect(await kids()).toBe('discovery_issuer_mismatch');
  server.setFault('discovery', NOT_FOUND);
  expect(await kids()).toBe('discovery_issuer_mismatch');
  server.discoveryOverrides = { jwks_uri: undefined };
  expect(await kids()).toBe('discovery_malformed');
});

it('come from the operator’s URL without metadata, and always through the guards', async () => {
  server.setFault('discovery', NOT_FOUND);
  server.setFault('metadata', NOT_FOUND);
  expect(await kids({ jwksUrl: server.jwksUri })).toEqual([server.signer.kid]);
  expect(server.requests.discovery).toBe(0);
  const closed = 'https://169.254.169.254/keys';
  expect(await kids({ jwksUrl: closed })).toBe('address_forbidden');
  server.setFault('discovery', undefined);
  for (const [url, code] of [
    [closed, 'address_forbidden'],
    [server.jwksUri.replace('https', 'http'), 'url_not_https'],
  ]) {
    server.discoveryOverrides = { jwks_uri: url };
    expect(await kids()).toBe(code);
  }
});

it('are public, of one kid each, and such that verifiers import them', async () => {
  const rsa = makeSigner('RS256');
  const pss = makeSigner('PS256');
  const curve = makeSigner('Ed25519');
  const twin = makeSigner('ES256');
  const other = makeSigner('ES256');
  server.extraKeys = [
    { ...rsa.jwk, alg: undefined },
    { ...pss.jwk, 'x5t#S256': 'x' },
    curve.jwk,
    twin.jwk,
    { ...other.jwk, kid: twin.kid },
    { ...makeSigner('ES256').jwk, use: 'enc' },
    { ...makeSigner('ES256').jwk, kid: 'no key id' },
    { ...makeSigner('Ed25519').privateKey.export({ format: 'jwk' }), kid: 'private' },
    { kty: 'oct', k: 'c2VjcmV0', kid: 'symmetric' },
  ];
  const answer = await fetched();
  const keys = answer.kind === 'keys' ? answer.keys : [];
  expect(keys.map(({ alg, kid }) => `${kid} ${alg}`)).toEqual(
    [`${rsa.kid} RS256`, `${pss.kid} PS256`, `${curve.kid} Ed25519`, `${server.signer.kid} ES256`].sort(),
  );
  for (const { alg, jwk } of keys) expect(importTokenKey(jwk, alg)).toBeDefined();
  expect(answer).toMatchObject({ fetchedAtMs: 7 });
});

it('are at most those that a bundle may hold', async () => {
  const { jwk } = makeSigner('Ed25519');
  server.extraKeys = Array.from({ length: 64 }, (_, index) => ({ ...jwk, kid: `key-${index}` }));
  expect(await kids()).toBe('key_set_malformed');
  server.extraKeys = server.extraKeys.slice(1);
  expect(await kids()).toHaveLength(64);
  server.extraKeys = [];
  server.dropAllKeys();
  expect(await kids()).toEqual([]);
});
