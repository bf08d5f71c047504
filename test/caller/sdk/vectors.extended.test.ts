/** Tests that each SDK makes the published signatures, through its key file and its profiles. */
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseRequestUrl } from '../../../src/caller/request-url.ts';
import { decodeBase64url } from '../../../src/protocol/base64url.ts';
import { parsePassport } from '../../../src/protocol/passport.ts';
import { pathOf } from '../../../src/protocol/request-target.ts';
import { signingKeyOf } from '../../../src/protocol/signing.ts';
import { verifySignature } from '../../../src/protocol/verify-signature.ts';
import { writeBrokerKey, writeEnrolledKey } from '../../support/caller/key-files.ts';
import { PREPARE_TIMEOUT_MS, SDK_DRIVERS } from '../../support/caller/sdk-drivers.ts';
import { DPOP, HTTP_MESSAGES, KEYS, SIGNING } from '../../support/protocol/published-vectors.ts';
import type { DpopVector, HttpMessageVector, SigningVector } from '../../vectors/make/format.ts';
import type { SdkJob } from './jobs.ts';

interface TargetVectors {
  readonly canonical: readonly string[];
  readonly refused: { readonly [rule: string]: readonly string[] };
  readonly authorities: readonly {
    readonly scheme: string;
    readonly given: string;
    readonly signed: string;
  }[];
  readonly authorities_refused: readonly { readonly scheme: string; readonly authority: string }[];
}
const targets: TargetVectors = JSON.parse(
  readFileSync(new URL('../../vectors/targets.json', import.meta.url), 'utf8'),
);
const folder = mkdtempSync(join(tmpdir(), 'pg-sdk-vectors-'));
afterAll(() => rmSync(folder, { recursive: true }));

function keyNamed(name: string) {
  const found = KEYS.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`no key ${name}`);
  return createPrivateKey({ key: found.jwk, format: 'jwk' });
}

/** A profile that fits the vector's request alone. */
function profileOf({ also_signed, auth_site, passport, request, route }: SigningVector, authority: string) {
  const { iss, sub, trust_domain, key_binding } = JSON.parse(passport.claims);
  const profile = {
    ...route,
    signed_headers: [...route.signed_headers, ...also_signed],
    method: request.method,
    path_template: pathOf(request.target),
    origins: [`${request.scheme}://${authority}`],
  };
  return { auth_site, issuer: iss, subject: sub, trust_domain, key_binding, profiles: [profile] };
}

function jobOf({ issued_at, jti, request }: SigningVector): SdkJob {
  const { authority, body_base64, headers, method, scheme, target } = request;
  const url = `${scheme}://${authority}${target}`;
  return { id: 1, method, url, headers, body_base64, now: issued_at, jti };
}

/** A profile that fits the vector's request alone, in an enrollment. */
function enrolledKeyOf({ also_signed, auth_site, key, key_id, nonce, request, route }: HttpMessageVector) {
  const { authority, scheme, target } = request;
  const { origin } = parseRequestUrl(`${scheme}://${authority}${target}`);
  return writeEnrolledKey(folder, `http-${nonce}`, {
    ...{ key: keyNamed(key), authSite: auth_site, key_id, expiresAt: '2099-01-01T00:00:00Z' },
    ...{ issuer: 'https://control.shop.example', trust_domain: 'shop.example', subject: 'client:reporting' },
    profiles: [
      {
        ...route,
        signed_headers: [...route.signed_headers, ...also_signed],
        method: request.method,
        path_template: pathOf(target),
        origins: [origin],
      },
    ],
  });
}

function httpJobOf({ created, nonce, request }: HttpMessageVector): SdkJob {
  const { authority, body_base64, headers, method, scheme, target } = request;
  return {
    id: 1,
    method,
    url: `${scheme}://${authority}${target}`,
    headers,
    body_base64,
    now: created,
    jti: nonce,
  };
}

/** Signing input and signature of a JWS. */
function partsOf(jws: string): readonly [string, string] {
  const end = jws.lastIndexOf('.');
  return [jws.slice(0, end), jws.slice(end + 1)];
}

/** A profile that fits the vector's request alone. */
function dpopProfileOf({ auth_site, passport, request }: DpopVector) {
  const claims = parsePassport(passport)?.claims;
  if (claims === undefined) throw new Error('not a passport');
  const { authority, method, scheme, target } = request;
  const { origin } = parseRequestUrl(`${scheme}://${authority}${target}`);
  const route = { route_id: 'r', audience: claims.audience, body: 'bound', signed_headers: [] };
  const profile = { ...route, method, path_template: pathOf(target), origins: [origin] };
  const { issuer, keyBinding: key_binding, subject, trustDomain: trust_domain } = claims;
  return { auth_site, issuer, subject, trust_domain, key_binding, profiles: [profile] };
}

function signedAuthority({ transcript }: SigningVector): string {
  return /^authority=(.*)$/m.exec(transcript)?.[1] ?? '';
}

describe.each(SDK_DRIVERS.map((driver) => [driver.language, driver] as const))('%s', (_, driver) => {
  if (driver.missing !== undefined) {
    it.skip(`cannot run here: ${driver.missing}`, () => undefined);
    return;
  }
  beforeAll(() => driver.prepare(), PREPARE_TIMEOUT_MS);

  it.each(SIGNING.map((vector) => [vector.name, vector] as const))('%s', async (_name, vector) => {
    const key = keyNamed(vector.holder_key);
    const keyFile = writeBrokerKey(folder, vector.jti, {
      key,
      passports: [vector.passport.jws],
      profileDocuments: [profileOf(vector, signedAuthority(vector))],
    });
    const [answer] = await driver.sign(keyFile, [jobOf(vector)]);
    expect(answer?.error).toBeUndefined();
    const transcript = Buffer.from(answer?.transcript_base64 ?? '', 'base64');
    expect(transcript.toString('latin1')).toBe(vector.transcript);
    const headers = Object.fromEntries(answer?.headers ?? []);
    const signature = decodeBase64url(headers['X-Proofgate-Signature'] ?? '') ?? Buffer.alloc(0);
    expect(verifySignature(signingKeyOf(key).publicKey, transcript, signature)).toBe(true);
    // ES256 signatures are different each time.
    const expected = { ...vector.headers, 'X-Proofgate-Signature': headers['X-Proofgate-Signature'] };
    expect(headers).toEqual(key.asymmetricKeyType === 'ed25519' ? vector.headers : expected);
  });

  it.each(HTTP_MESSAGES.map((vector) => [vector.name, vector] as const))(
    'HTTP messages: %s',
    async (_name, vector) => {
      const key = keyNamed(vector.key);
      const [answer] = await driver.sign(
        enrolledKeyOf(vector),
        [httpJobOf(vector)],
        'http-message-signatures',
      );
      const { Signature = '', ...others } = Object.fromEntries(answer?.headers ?? []);
      const { Signature: expected, ...expectedOthers } = vector.headers;
      expect([answer?.error, others]).toEqual([undefined, expectedOthers]);
      const signature = Buffer.from(Signature.slice('sig=:'.length), 'base64');
      const base = Buffer.from(vector.signature_base);
      expect(verifySignature(signingKeyOf(key).publicKey, base, signature)).toBe(true);
      // ES256 signatures are different each time.
      if (key.asymmetricKeyType === 'ed25519') expect(Signature).toBe(expected);
    },
  );

  it.each(DPOP.map((vector) => [vector.name, vector] as const))('DPoP: %s', async (_name, vector) => {
    const key = keyNamed(vector.holder_key);
    const { issued_at, jti, nonce, passport, request } = vector;
    const { authority, body_base64, headers: given, method, scheme, target } = request;
    const url = `${scheme}://${authority}${target}`;
    const keyFile = writeBrokerKey(folder, `dpop-${jti}`, {
      key,
      passports: [passport],
      profileDocuments: [dpopProfileOf(vector)],
    });
    const job = { id: 1, method, url, headers: given, body_base64, now: issued_at, jti };
    const [answer] = await driver.sign(
      keyFile,
      [nonce === undefined ? job : { ...job, dpop_nonce: nonce }],
      'dpop',
    );
    const { DPoP = '', ...others } = Object.fromEntries(answer?.headers ?? []);
    const { DPoP: expected, ...expectedOthers } = vector.headers;
    expect([answer?.error, others]).toEqual([undefined, expectedOthers]);
    const [input, signature] = partsOf(DPoP);
    expect(input).toBe(partsOf(expected)[0]);
    const bytes = decodeBase64url(signature) ?? Buffer.alloc(0);
    expect(verifySignature(signingKeyOf(key).publicKey, Buffer.from(input), bytes)).toBe(true);
    // ES256 signatures are different each time.
    if (key.asymmetricKeyType === 'ed25519') expect(DPoP).toBe(expected);
  });

  it('rejects what no verifier accepts as an HTTP message', async () => {
    const [vector] = HTTP_MESSAGES;
    if (vector === undefined) throw new Error('no vector');
    const job = { ...httpJobOf(vector), url: 'https://api.shop.example/v1/orders/17' };
    const own = ['Signature-Input', vector.headers['Signature-Input']] as const;
    const jobs: readonly SdkJob[] = [
      job,
      { ...job, url: `${job.url}?` },
      { ...job, url: `${job.url}??` },
      { ...job, headers: [['signature', 'keyId="app"']] },
      { ...job, headers: [['Signature-Input', 'app=("@method");created=1']] },
      { ...job, headers: [['Signature-Input', `${own[1]}, app=("@method")`]] },
      { ...job, headers: [own, ['signature-input', 'app=("@method")']] },
      { ...job, headers: [own] },
      { ...job, headers: [['Authorization', 'Bearer x']] },
    ];
    const answers = await driver.sign(enrolledKeyOf(vector), jobs, 'http-message-signatures');
    expect(answers.map(({ error }) => error ?? 'signed')).toEqual([
      ...['signed', 'url_not_canonical', 'signed'],
      ...['header_reserved', 'header_reserved', 'header_reserved', 'header_reserved'],
      ...['signed', 'header_reserved'],
    ]);
    const [passports] = SIGNING;
    if (passports === undefined) throw new Error('no vector');
    const brokerKey = writeBrokerKey(folder, 'no-key-id', {
      key: keyNamed(passports.holder_key),
      passports: [passports.passport.jws],
      profileDocuments: [anyPathProfile(passports)],
    });
    const [answer] = await driver.sign(brokerKey, [job], 'http-message-signatures');
    expect(answer?.error).toBe('key_id_missing');
  });

  it('accepts canonical targets and rejects the others', async () => {
    const [vector] = SIGNING;
    if (vector === undefined) throw new Error('no vector');
    const keyFile = writeBrokerKey(folder, 'targets', {
      key: keyNamed(vector.holder_key),
      passports: [vector.passport.jws],
      profileDocuments: [anyPathProfile(vector)],
    });
    const refused = Object.values(targets.refused)
      .flat()
      // Without a slash at the beginning, or with a fragment alone, another URL results.
      .filter((target) => target.startsWith('/'));
    const all = [...targets.canonical, ...refused];
    const jobs = all.map((target, id) => ({
      ...jobOf(vector),
      id,
      method: 'GET',
      url: `https://api.shop.example${target}`,
    }));
    const answers = await driver.sign(keyFile, jobs);
    const codes = answers.map(({ error }) => error ?? 'signed');
    expect(codes.slice(targets.canonical.length)).toEqual(refused.map(() => 'url_not_canonical'));
    // The template does not match a path with an empty segment, such as a trailing slash.
    for (const code of codes.slice(0, targets.canonical.length))
      expect(['signed', 'profile_not_found']).toContain(code);
  });

  it('normalizes authorities as the vectors do, and rejects the others', async () => {
    const [vector] = SIGNING;
    if (vector === undefined) throw new Error('no vector');
    const [profile] = anyPathProfile(vector).profiles;
    const origins = [...new Set(targets.authorities.map(({ scheme, signed }) => `${scheme}://${signed}`))];
    const keyFile = writeBrokerKey(folder, 'authorities', {
      key: keyNamed(vector.holder_key),
      passports: [vector.passport.jws],
      profileDocuments: [{ ...anyPathProfile(vector), profiles: [{ ...profile, origins }] }],
    });
    const refused = targets.authorities_refused.map(({ scheme, authority }) => `${scheme}://${authority}`);
    const urls = [
      ...targets.authorities.map(({ scheme, given }) => `${scheme}://${given}/a`),
      // With a slash or "#" in it, it is another URL.
      ...refused.filter((url) => !/[/#]$/.test(url)).map((url) => `${url}/a`),
    ];
    const jobs = urls.map((url, id) => ({ ...jobOf(vector), id, method: 'GET', url }));
    const answers = await driver.sign(keyFile, jobs);
    const lines = answers.map(({ error, transcript_base64 }) => {
      const text = Buffer.from(transcript_base64, 'base64').toString('latin1');
      return error ?? /^authority=(.*)$/m.exec(text)?.[1];
    });
    const accepted = targets.authorities.length;
    expect(lines.slice(0, accepted)).toEqual(targets.authorities.map(({ signed }) => signed));
    for (const line of lines.slice(accepted)) expect(line).toBe('url_invalid');
  });
});

/** A profile for every path but those with an empty segment. */
function anyPathProfile(vector: SigningVector) {
  const { profiles, ...document } = profileOf(vector, 'api.shop.example');
  const changes = { method: 'GET', path_template: '/{path*}', signed_headers: [] };
  return { ...document, profiles: profiles.map((profile) => ({ ...profile, ...changes })) };
}
