import { createPublicKey, hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { jwtVerify } from 'jose';
import { parseKeySet, TOKEN_ALGORITHMS } from '../../../src/control/issuers/key-set.ts';
import type { KeyLookup } from '../../../src/control/issuers/source-keys.ts';
import { TOKEN_PROBLEM_CODES } from '../../../src/control/issuers/token-envelope.ts';
import { tokenHash, verifyWorkloadToken } from '../../../src/control/issuers/workload-token.ts';
import { AUDIENCE, IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { TokenRequest } from '../../support/fakes/service-account-issuer.ts';
import { makeSigner, signCompact } from '../../support/fixtures/token-signer.ts';
import { NOW_SECONDS, REFUSED_TOKENS, type TokenEnvironment } from './token-cases.ts';

const SUBJECT = 'system:serviceaccount:prod:billing';
let issuers: IssuerEnvironment;
let env: TokenEnvironment;
let asked: string[] = [];

beforeAll(async () => {
  issuers = await IssuerEnvironment.start();
  const issuer = await issuers.issuer({ algorithm: 'RS256' });
  const rsa = issuer.signer;
  env = { issuer, rsa, ec: issuer.rotate('ES256'), ed: issuer.rotate('Ed25519') };
});
afterAll(() => issuers.close());

const keysOfIssuer = async (kid: string): Promise<KeyLookup> => {
  asked.push(kid);
  return { kind: 'keys', keys: parseKeySet(env.issuer.keySet()) ?? [] };
};

function verify(token: string, { keysFor = keysOfIssuer, nowSeconds = NOW_SECONDS, subject = SUBJECT } = {}) {
  asked = [];
  const expected = { issuer: env.issuer.issuer, audience: AUDIENCE, subject };
  return verifyWorkloadToken(token, { expected, keysFor, nowMs: () => nowSeconds * 1000 + 999 });
}

const token = (request: TokenRequest = {}) =>
  env.issuer.token({ nowMs: NOW_SECONDS * 1000, signer: env.rsa, ...request });

describe('a cluster’s token is verified', () => {
  it('with its times and what the cluster says of the pod', async () => {
    const result = await verify(token({ pod: 'billing-7d4b9', node: 'node-7' }));
    expect(result).toEqual({
      kind: 'verified',
      keyThumbprint: expect.any(String),
      issuer: env.issuer.issuer,
      subject: SUBJECT,
      audience: AUDIENCE,
      expiresAtSeconds: NOW_SECONDS + 3600,
      issuedAtSeconds: NOW_SECONDS,
      provenance: {
        kubernetes_namespace: 'prod',
        kubernetes_service_account: 'billing',
        kubernetes_service_account_uid: expect.any(String),
        kubernetes_pod: 'billing-7d4b9',
        kubernetes_pod_uid: expect.any(String),
        kubernetes_node: 'node-7',
        kubernetes_node_uid: expect.any(String),
      },
    });
  });

  it.each(TOKEN_ALGORITHMS)('signed with %s, as another implementation finds, too', async (algorithm) => {
    const signer = makeSigner(algorithm);
    const signed = token({ signer });
    const keysFor = async (): Promise<KeyLookup> => ({
      kind: 'keys',
      keys: parseKeySet({ keys: [signer.jwk] }) ?? [],
    });
    expect(await verify(signed, { keysFor })).toMatchObject({ kind: 'verified' });
    const publicKey = createPublicKey({ key: signer.jwk, format: 'jwk' });
    const currentDate = new Date(NOW_SECONDS * 1000);
    await expect(
      jwtVerify(signed, publicKey, { algorithms: [algorithm], currentDate }),
    ).resolves.toBeDefined();
    // Changing any one character makes a different or an invalid token.
    const at = Math.floor(signed.length / 2);
    const changed = signed.slice(0, at) + (signed[at] === 'A' ? 'B' : 'A') + signed.slice(at + 1);
    expect((await verify(changed, { keysFor })).kind).toBe('refused');
  });

  it.each<[string, TokenRequest]>([
    ['an audience that is no list', { claims: { aud: AUDIENCE } }],
    ['the type JWT', { header: { typ: 'JWT' } }],
    ['the type jwt', { header: { typ: 'jwt' } }],
    ['a thumbprint of a certificate', { header: { x5t: 'AAAA' } }],
    ['unknown members', { header: { 'example.com/x': 1 }, claims: { 'example.com/y': {} } }],
    ['no iat', { claims: { iat: undefined } }],
    ['no nbf', { claims: { nbf: undefined } }],
    ['no cluster claims', { claims: { 'kubernetes.io': undefined } }],
    ['a clock that is 30 s ahead', { claims: { iat: NOW_SECONDS + 30, nbf: NOW_SECONDS + 30 } }],
    ['a second left', { claims: { exp: NOW_SECONDS + 1 } }],
    ['two days to live', { claims: { exp: NOW_SECONDS + 172_800 } }],
  ])('with %s', async (_, request) => {
    expect(await verify(token(request))).toMatchObject({ kind: 'verified' });
  });

  it('until its last second and no longer', async () => {
    const short = token({ expiresInSeconds: 600 });
    expect((await verify(short, { nowSeconds: NOW_SECONDS + 599 })).kind).toBe('verified');
    expect(await verify(short, { nowSeconds: NOW_SECONDS + 600 })).toMatchObject({ code: 'token_expired' });
  });
});

describe('a token is refused', () => {
  it('in none of the cases when nothing is wrong with it', async () => {
    expect((await verify(token())).kind).toBe('verified');
    expect((await verify(token({ signer: env.ec }))).kind).toBe('verified');
    expect((await verify(token({ signer: env.ed }))).kind).toBe('verified');
  });

  it.each(REFUSED_TOKENS.map(({ what, code, make }) => [what, code, make] as const))(
    '%s: %s',
    async (_, code, make) => {
      const bad = make(env);
      const result = await verify(bad);
      expect(result).toEqual({ kind: 'refused', code, detail: expect.any(String) });
      for (const part of bad.split('.').filter((text) => text.length > 20)) {
        expect(JSON.stringify(result)).not.toContain(part);
      }
    },
  );

  it('with every code that there is', () => {
    const covered = new Set(REFUSED_TOKENS.map(({ code }) => code));
    expect(TOKEN_PROBLEM_CODES.filter((code) => !covered.has(code))).toEqual(['issuer_keys_unavailable']);
  });

  it('when the keys cannot be had, with the time to come again', async () => {
    const keysFor = async (): Promise<KeyLookup> => ({ kind: 'unavailable', retryAfterSeconds: 17 });
    expect(await verify(token(), { keysFor })).toMatchObject({
      code: 'issuer_keys_unavailable',
      retryAfterSeconds: 17,
    });
  });

  it('when two keys have its name', async () => {
    const keys = parseKeySet({ keys: [env.rsa.jwk, { ...makeSigner('RS256').jwk, kid: env.rsa.kid }] }) ?? [];
    const keysFor = async (): Promise<KeyLookup> => ({ kind: 'keys', keys });
    expect(await verify(token(), { keysFor })).toMatchObject({ code: 'token_key_unknown' });
  });

  it('by its signature before its claims are looked at', async () => {
    const stranger = makeSigner('RS256');
    const forged = { signer: stranger, header: { kid: env.rsa.kid } };
    for (const claims of [{ iss: 'x' }, { aud: 'x' }, { sub: 'x' }, { exp: undefined }, { exp: 0 }]) {
      expect(await verify(token({ ...forged, claims }))).toMatchObject({ code: 'token_signature' });
    }
  });

  it('without asking for keys when header or form are enough to tell', async () => {
    for (const bad of [
      '',
      token({ header: { alg: 'none' } }),
      token({ header: { jwk: {} } }),
      token({ header: { kid: undefined } }),
    ]) {
      expect((await verify(bad)).kind).toBe('refused');
      expect(asked).toEqual([]);
    }
    await verify(token());
    expect(asked).toEqual([env.rsa.kid]);
  });

  it('whatever bytes come, without an exception', async () => {
    const part = fc.oneof(
      fc.string(),
      fc.json(),
      fc.constant(env.rsa.kid),
      fc.constantFrom('{}', 'null', '[]'),
    );
    const compact = fc
      .tuple(part, part, part)
      .map((parts) => parts.map((text) => Buffer.from(text).toString('base64url')).join('.'));
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), compact), async (text) => {
        expect((await verify(text)).kind).toBe('refused');
      }),
      { numRuns: 300 },
    );
  });

  it('whatever a good signer puts into its claims, unless it is exactly right', async () => {
    const names = fc.constantFrom(
      'iss',
      'aud',
      'sub',
      'exp',
      'nbf',
      'iat',
      'kubernetes.io',
      '__proto__',
      'toString',
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(names, fc.jsonValue()), async (claims) => {
        const result = await verify(signCompact({ alg: 'Ed25519', kid: env.ed.kid }, claims, env.ed));
        expect(result.kind).toBe('refused');
      }),
      { numRuns: 200 },
    );
  });
});

describe('provenance', () => {
  const provenanceOf = async (cluster: unknown, subject = SUBJECT) => {
    const result = await verify(token({ claims: { 'kubernetes.io': cluster, sub: subject } }), { subject });
    return result.kind === 'verified' ? result.provenance : result.code;
  };

  it('leaves out what a bundle cannot hold', async () => {
    expect(
      await provenanceOf({
        namespace: 'prod',
        serviceaccount: { name: 'billing', uid: 'a b' },
        pod: { name: 'p'.repeat(513), uid: 'p'.repeat(512) },
        node: { name: 'nöde', uid: 5 },
        secret: { name: 'not asked for' },
        warnafter: 5,
      }),
    ).toEqual({
      kubernetes_namespace: 'prod',
      kubernetes_service_account: 'billing',
      kubernetes_pod_uid: 'p'.repeat(512),
    });
  });

  it.each([
    null,
    'text',
    [],
    5,
    { namespace: null, pod: [], node: 'x' },
    JSON.parse('{"__proto__":{"namespace":"dev"}}'),
  ])('is empty for %j', async (cluster) => {
    expect(await provenanceOf(cluster)).toEqual({});
  });

  it('of another kind of subject is taken as it is said', async () => {
    expect(await provenanceOf({ namespace: 'dev' }, 'robot:7')).toEqual({ kubernetes_namespace: 'dev' });
  });
});

describe('a token’s hash', () => {
  it('is of what was signed', () => {
    const text = token();
    expect(tokenHash(text)).toBe(hash('sha256', text.slice(0, text.lastIndexOf('.')), 'base64url'));
    expect(tokenHash(text)).not.toBe(tokenHash(token()));
  });
});
