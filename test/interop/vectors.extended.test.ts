/** Tests signers in other languages, written from docs/design/protocol.md alone: they make the published signatures byte for byte. */
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PassportToMake, SigningJob } from '../support/interop/job.ts';
import { foreignSigners, PREPARE_TIMEOUT_MS, saySkipped } from '../support/interop/signers.ts';
import { KEYS, SIGNING } from '../support/protocol/published-vectors.ts';
import type { SigningVector } from '../vectors/make/format.ts';

const folder = mkdtempSync(join(tmpdir(), 'pg-interop-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** ES256 signatures are another each time, and the signers have Ed25519 alone. */
const deterministic = SIGNING.filter(({ holder_key, passport_key }) =>
  [holder_key, passport_key].every((name) => keyNamed(name).alg === 'Ed25519'),
);

function keyNamed(name: string) {
  const key = KEYS.find((candidate) => candidate.name === name);
  if (key === undefined) throw new Error(`no key ${name}`);
  return key;
}

function keyFile(name: string): string {
  const path = join(folder, `${name}.pem`);
  const key = createPrivateKey({ key: keyNamed(name).jwk, format: 'jwk' });
  writeFileSync(path, key.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return path;
}

function jobOf(vector: SigningVector, passport: SigningJob['passport']): SigningJob {
  const { also_signed, auth_site, expires_at, issued_at, jti, request, route } = vector;
  const { authority, body_base64, headers, method, scheme, target } = request;
  return {
    holder_key_file: keyFile(vector.holder_key),
    passport,
    auth_site,
    route,
    request: { method, url: `${scheme}://${authority}${target}`, headers, body_base64 },
    also_signed,
    jti,
    issued_at,
    expires_at,
  };
}

function passportToMake({ passport, passport_key }: SigningVector): PassportToMake {
  const { kid } = JSON.parse(passport.header);
  const { iss, sub, trust_domain, key_binding, iat, exp, nbf, jti, provenance, context } = JSON.parse(
    passport.claims,
  );
  return {
    key_file: keyFile(passport_key),
    key_id: kid,
    issuer: iss,
    subject: sub,
    trust_domain,
    key_binding,
    issued_at: iat,
    expires_at: exp,
    not_before: nbf,
    jti,
    provenance,
    context,
  };
}

describe.each(foreignSigners().map((signer) => [signer.language, signer] as const))('%s', (_, signer) => {
  if (signer.missing !== undefined) {
    saySkipped(signer);
    it.skip('is not here', () => undefined);
    return;
  }

  beforeAll(() => signer.prepare(), PREPARE_TIMEOUT_MS);

  it('has enough to reproduce', () => {
    expect(deterministic.length).toBeGreaterThanOrEqual(10);
  });

  it.each(deterministic.map((vector) => [vector.name, vector] as const))('%s', async (_name, vector) => {
    const made = await signer.sign(jobOf(vector, passportToMake(vector)));
    expect(made.transcript).toBe(vector.transcript);
    expect(made.headers).toEqual(vector.headers);
    expect(await signer.sign(jobOf(vector, { jws: vector.passport.jws }))).toEqual(made);
  });

  it('signs what others vouched for: an Ed25519 holder whose passport is ES256', async () => {
    const [first] = deterministic;
    const other = SIGNING.find(({ passport_key }) => keyNamed(passport_key).alg === 'ES256');
    if (first === undefined || other === undefined) throw new Error('no vector');
    const { transcript } = await signer.sign(jobOf(first, { jws: other.passport.jws }));
    expect(transcript).toContain(`passport-sha256=${/passport-sha256=(.*)/.exec(other.transcript)?.[1]}\n`);
  });

  it.each([
    ['a byte that must be escaped', { url: 'https://api.shop.example/caf\u00e9' }],
    ['a host beyond ASCII', { url: 'https://b\u00fccher.example/' }],
    ['no URL', { url: 'api.shop.example/' }],
    [
      'a header that is there twice',
      {
        headers: [
          ['X-Tenant', 'a'],
          ['x-tenant', 'a'],
          ['Content-Type', 'a'],
        ],
      },
    ],
    ['a header that is not there', { headers: [] }],
    [
      'a header without a value',
      {
        headers: [
          ['X-Tenant', ' '],
          ['Content-Type', 'a'],
        ],
      },
    ],
  ] as const)('refuses %s', async (_name, change) => {
    const [vector] = deterministic;
    if (vector === undefined) throw new Error('no vector');
    const job = jobOf(vector, { jws: vector.passport.jws });
    await expect(signer.sign({ ...job, request: { ...job.request, ...change } })).rejects.toThrow(/sign: \S/);
  });
});
