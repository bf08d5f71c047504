import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  discoveryUrlOf,
  readIssuerUrl,
  readKeySetUrl,
  scopeOf,
} from '../../../src/control/issuers/issuer-url.ts';
import {
  type SourceCoordinates,
  type SourceValidation,
  validateSource,
} from '../../../src/control/issuers/validate-source.ts';
import { AUDIENCE, GOOD_ADDRESS, IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { makeSigner } from '../../support/fixtures/token-signer.ts';

const NOW_MS = 1_800_000_000_000;
let env: IssuerEnvironment;
let issuer: ServiceAccountIssuer;

beforeAll(async () => {
  env = await IssuerEnvironment.start();
});
afterAll(() => env.close());
beforeEach(async () => {
  issuer = await env.issuer({ path: '/id/4F2A' });
});

function validate(changes: Partial<SourceCoordinates> = {}): Promise<SourceValidation> {
  const source = { issuer: issuer.issuer, jwksUri: issuer.jwksUri, audience: AUDIENCE, ...changes };
  return validateSource(source, env.fetcher(), () => NOW_MS);
}

async function valid(changes: Partial<SourceCoordinates> = {}) {
  const result = await validate(changes);
  if (result.kind !== 'valid') throw new Error(result.code);
  return result;
}

describe('a cluster’s issuer is valid', () => {
  it('with scope, keys and key set', async () => {
    const result = await valid();
    expect(result.detectedScope).toBe(`${new URL(issuer.issuer).host}/id/4F2A`);
    expect(result.keys.map(({ kid }) => kid)).toEqual([issuer.signer.kid]);
    expect(JSON.parse(result.jwks)).toEqual(issuer.keySet());
    expect(result.fetchedAtMs).toBe(NOW_MS);
    expect(issuer.requests).toEqual({ discovery: 1, keys: 1, metadata: 0, other: 0 });
  });

  it('also when some of its keys are of no use', async () => {
    issuer.extraKeys = [{ kty: 'oct', k: 'AAAA', kid: 'x' }, makeSigner('RS256', 1024).jwk];
    expect((await valid()).keys).toHaveLength(1);
  });
});

it('whose discovery is skipped is asked for its key set alone, whatever its document says', async () => {
  issuer.setFault('discovery', { kind: 'delay', delayMs: 3_600_000 });
  const { detectedScope, keys } = await valid({ discovery: 'skipped' });
  expect(detectedScope).toBe(`${new URL(issuer.issuer).host}/id/4F2A`);
  expect(keys).toHaveLength(1);
  expect(issuer.requests).toEqual({ discovery: 0, keys: 1, metadata: 0, other: 0 });
});

describe('the fingerprint', () => {
  it('is the SHA-256 over the documented lines', async () => {
    issuer.rotate('ES256');
    issuer.rotate('Ed25519');
    const { fingerprint, keys } = await valid();
    const thumbprints = keys
      .map(({ thumbprint }) => thumbprint)
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(thumbprints).toHaveLength(3);
    const text =
      `proofgate-source-v1\nissuer=${issuer.issuer}\njwks-uri=${issuer.jwksUri}\naudience=${AUDIENCE}\n` +
      thumbprints.map((thumbprint) => `key=${thumbprint}\n`).join('');
    expect(fingerprint).toBe(createHash('sha256').update(text).digest('base64url'));
  });

  it('does not depend on order, names or unusable keys', async () => {
    const [first, second] = [makeSigner('ES256'), makeSigner('Ed25519')];
    issuer.extraKeys = [first.jwk, second.jwk];
    const before = await valid();
    issuer.extraKeys = [
      { ...second.jwk, kid: 'renamed' },
      { kty: 'oct', k: 'AA', kid: 'x' },
      first.jwk,
      first.jwk,
    ];
    expect((await valid()).fingerprint).toBe(before.fingerprint);
  });

  it('changes with audience and keys', async () => {
    const before = await valid();
    expect((await valid({ audience: 'another' })).fingerprint).not.toBe(before.fingerprint);
    issuer.rotate();
    expect((await valid()).fingerprint).not.toBe(before.fingerprint);
  });
});

describe('a draft is invalid', () => {
  it.each([
    ['another issuer', { issuer: 'https://other.example' }, 'discovery_issuer_mismatch'],
    ['an issuer with a slash more', { issuer: 'SLASH' }, 'discovery_issuer_mismatch'],
    ['no issuer', { issuer: undefined }, 'discovery_issuer_mismatch'],
    ['a list of issuers', { issuer: ['SELF'] }, 'discovery_issuer_mismatch'],
    ['another JWKS URI', { jwks_uri: 'https://other.example/keys' }, 'discovery_jwks_uri_mismatch'],
    ['no JWKS URI', { jwks_uri: undefined }, 'discovery_jwks_uri_mismatch'],
    ['a JWKS URI that is null', { jwks_uri: null }, 'discovery_jwks_uri_mismatch'],
  ])('when discovery says %s; then no key set is fetched', async (_, overrides, code) => {
    const spell = (value: unknown) => (value === 'SLASH' ? `${issuer.issuer}/` : value);
    issuer.discoveryOverrides = Object.fromEntries(
      Object.entries(overrides).map(([name, value]) => [name, spell(value)]),
    );
    expect(await validate()).toMatchObject({ kind: 'invalid', code });
    expect(issuer.requests.keys).toBe(0);
  });

  it.each([
    ['"text"', 'discovery_malformed'],
    ['[]', 'discovery_malformed'],
    ['null', 'discovery_malformed'],
    ['{}', 'discovery_issuer_mismatch'],
  ])('when discovery is %s', async (body, code) => {
    issuer.setFault('discovery', { kind: 'body', body });
    expect(await validate()).toMatchObject({ kind: 'invalid', code });
  });

  it.each([
    ['[]', 'key_set_malformed'],
    ['{}', 'key_set_malformed'],
    ['{"keys":[1]}', 'key_set_malformed'],
    ['{"keys":[]}', 'key_set_no_usable_key'],
    ['{"keys":[{"kty":"oct","k":"AAAA","kid":"a","alg":"HS256"}]}', 'key_set_no_usable_key'],
  ])('when the key set is %s', async (body, code) => {
    issuer.setFault('keys', { kind: 'body', body });
    expect(await validate()).toMatchObject({ kind: 'invalid', code });
  });

  it.each(['', 'a b', 'a\nb', 'é', 'a'.repeat(513)])(
    'when the audience is %j; then nothing is fetched',
    async (audience) => {
      expect(await validate({ audience })).toMatchObject({ kind: 'invalid', code: 'audience_malformed' });
      expect(issuer.requests).toEqual({ discovery: 0, keys: 0, metadata: 0, other: 0 });
    },
  );

  it('when the issuer is where it says, but was entered with a slash more', async () => {
    expect(await validate({ issuer: `${issuer.issuer}/` })).toMatchObject({
      code: 'discovery_issuer_mismatch',
    });
    expect(issuer.requests.discovery).toBe(1);
  });

  it('when the issuer is unreachable', async () => {
    const gone = await env.issuer();
    const coordinates = { issuer: gone.issuer, jwksUri: gone.jwksUri };
    await gone.close();
    expect(gone.issuer).toContain(GOOD_ADDRESS);
    expect(await validate(coordinates)).toMatchObject({ kind: 'invalid', code: 'connection_failed' });
  });
});

describe('an issuer', () => {
  it.each([
    ['https://issuer.example', 'issuer.example'],
    ['https://issuer.example/', 'issuer.example'],
    ['https://issuer.example/id/4F2A', 'issuer.example/id/4F2A'],
    ['https://issuer.example/id/4F2A/', 'issuer.example/id/4F2A'],
    ['https://issuer.example:6443', 'issuer.example:6443'],
    ['https://xn--bcher-kva.example/a', 'xn--bcher-kva.example/a'],
    ['https://1.1.1.1/a', '1.1.1.1/a'],
    ['https://[2606:4700::1]:8443/a', '[2606:4700::1]:8443/a'],
  ])('may be %s, whose scope is %s', (text, scope) => {
    const reading = readIssuerUrl(text);
    expect(reading.kind === 'url' && scopeOf(reading.url)).toBe(scope);
  });

  it.each(['https://issuer.example/?a=b', 'https://issuer.example/a?', 'https://issuer.example/?'])(
    'has no query: %s',
    (text) => {
      expect(readIssuerUrl(text)).toMatchObject({ code: 'url_has_query' });
    },
  );

  it('is at most 512 characters long', () => {
    const longest = `https://issuer.example/${'a'.repeat(512 - 23)}`;
    expect(readIssuerUrl(longest).kind).toBe('url');
    expect(readIssuerUrl(`${longest}a`)).toMatchObject({ code: 'url_malformed' });
    expect(readKeySetUrl(`${longest}a`)).toMatchObject({ code: 'url_malformed' });
  });
});

it('a key set may have a query', () => {
  expect(readKeySetUrl('https://issuer.example/keys?tenant=1').kind).toBe('url');
});

it.each([
  ['https://issuer.example', 'https://issuer.example/.well-known/openid-configuration'],
  ['https://issuer.example/', 'https://issuer.example/.well-known/openid-configuration'],
  ['https://issuer.example/id/1', 'https://issuer.example/id/1/.well-known/openid-configuration'],
  ['https://issuer.example/id/1/', 'https://issuer.example/id/1/.well-known/openid-configuration'],
])('%s is described at %s', (issuer, url) => {
  expect(discoveryUrlOf(issuer)).toBe(url);
});
