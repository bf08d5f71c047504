/** Tests that all SDKs make the same credentials as the engine for random requests, and that the verifier accepts them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { parseRequestUrl } from '../../../src/caller/request-url.ts';
import { RequestSigner } from '../../../src/caller/sign/request-signer.ts';
import { PROOF_FORMATS, type ProofFormat, UNBOUND_PARTS } from '../../../src/protocol/proof-format.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { parseSigningProfiles } from '../../../src/protocol/signing-profile-file.ts';
import { decide } from '../../../src/verifier/decision/decide.ts';
import { createPassportCache } from '../../../src/verifier/decision/facts/passport-cache.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { testSeed } from '../../support/bundle/byte-corruptions.ts';
import { writeEnrolledKey } from '../../support/caller/key-files.ts';
import { PREPARE_TIMEOUT_MS, SDK_DRIVERS } from '../../support/caller/sdk-drivers.ts';
import { credentialsOf } from '../../support/caller/signing.ts';
import { AUTH_SITE, bundleContent, NOW_SECONDS, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import type { SdkAnswer, SdkJob } from './jobs.ts';
import { randomRequests } from './random-requests.ts';

const COUNT = Number(process.env.PROOFGATE_TEST_SDK_REQUESTS ?? 2000);
const SEED = testSeed();

const ORIGINS = ['https://api.shop.example', 'http://api.shop.example:8080', 'https://[2001:db8::1]:8443'];
const route = (route_id: string, method: string, path_template: string, more: object = {}) => ({
  route_id,
  method,
  path_template,
  audience: 'https://api.shop.example',
  signed_headers: [] as string[],
  body: 'bound' as const,
  ...more,
});
const ROUTES = [
  route('order-read', 'GET', '/v1/orders/{id}'),
  route('order-create', 'POST', '/v1/orders', { signed_headers: ['content-type', 'x-tenant'] }),
  route('order-replace', 'PUT', '/v1/orders/{id}', { signed_headers: ['if-match'] }),
  route('order-delete', 'DELETE', '/v1/orders/{id}', { audience: 'urn:orders' }),
  route('files', 'GET', '/v1/files/{path*}', { audience: 'urn:files' }),
  route('upload', 'POST', '/v1/uploads/{name}', { body: 'unbound' as const }),
  route('patch', 'PATCH', '/v2/{kind}/{id}/lines', { signed_headers: ['x-a', 'x-a-b', 'x-a_b'] }),
  route('head', 'HEAD', '/'),
];

const keys = newTestKeys();
const usual = bundleContent(keys);
const LAST_SECONDS = NOW_SECONDS + 86_400;
const content: BundleContent = {
  ...usual,
  expires_at: formatTime(LAST_SECONDS),
  origins: ORIGINS,
  derived_keys: (usual.derived_keys ?? []).map((key) => ({ ...key, expires_at: formatTime(LAST_SECONDS) })),
  routes: ROUTES.map((each) => ({
    ...each,
    resource: 'orders',
    accepted_proofs: [...PROOF_FORMATS],
    unbound: [...UNBOUND_PARTS],
    freshness_class: 'bounded' as const,
    max_staleness_seconds: 86_400,
  })),
  route_sources: ROUTES.map(({ route_id }) => ({
    route_id,
    allowed_sources: usual.route_sources[1]?.allowed_sources ?? [],
  })),
};
const [client] = content.clients ?? [];
const coordinates = {
  key_id: 'dk_billing',
  issuer: client?.issuer ?? '',
  trust_domain: client?.trust_domain ?? '',
  subject: client?.subject ?? '',
};
const profiles = ROUTES.map((each) => ({ ...each, origins: ORIGINS }));
const plan = { seed: SEED, count: COUNT, routes: ROUTES, origins: ORIGINS, nowSeconds: NOW_SECONDS };
const jobs = [...randomRequests(plan)];

const folder = mkdtempSync(join(tmpdir(), 'pg-sdk-corpus-'));
afterAll(() => rmSync(folder, { recursive: true }));
const keyFile = writeEnrolledKey(folder, 'billing', {
  key: keys.derived.privateKey,
  authSite: AUTH_SITE,
  ...coordinates,
  expiresAt: '2099-01-01T00:00:00Z',
  profiles,
});

let snapshot: Snapshot | undefined;
const reference = new Map<ProofFormat, readonly SdkAnswer[]>();
beforeAll(async () => {
  snapshot = await compileBundle(content, { file: 'bundle', head: 'A'.repeat(43) });
  for (const proof of PROOF_FORMATS) reference.set(proof, signWithEngine(proof));
});

function signWithEngine(proof: ProofFormat): readonly SdkAnswer[] {
  let current: SdkJob | undefined;
  const signer = new RequestSigner({
    proof,
    nowMs: () => (current?.now ?? 0) * 1000,
    newJti: () => current?.jti ?? '',
  });
  const document = { auth_site: AUTH_SITE, ...coordinates, key_binding: 'software', profiles };
  const file = parseSigningProfiles(JSON.stringify(document), 'profile');
  signer.replaceIdentity({ key: keys.derived, files: [file], passports: undefined });
  return jobs.map((job) => {
    current = job;
    const { method, url } = job;
    const headers = job.headers.map(([name, value]) => ({
      name,
      value: value.replace(/^[\t ]+|[\t ]+$/g, ''),
    }));
    const signed = signer.sign({ method, url, headers, body: bodyOf(job) });
    if (signed.kind === 'failed')
      return { id: job.id, headers: [], transcript_base64: '', error: signed.code };
    const lines = signed.headers.reveal().map(({ name, value }) => [name, value] as const);
    const transcript = Buffer.from(
      proof === 'transcript-v1' ? credentialsOf(signed).transcript : '',
      'base64url',
    );
    return { id: job.id, headers: lines, transcript_base64: transcript.toString('base64') };
  });
}

function bodyOf({ body_base64 }: SdkJob): Buffer | undefined {
  return body_base64 === null ? undefined : Buffer.from(body_base64, 'base64');
}

/** The request as an enforcement point sees it. */
function factsOf(job: SdkJob, credentials: SdkAnswer['headers']): RequestFacts {
  const { authority, scheme, target } = parseRequestUrl(job.url);
  const all = [...job.headers, ...credentials].map(([name, value]) => ({
    name: name.toLowerCase(),
    value: value.trim(),
  }));
  const body = bodyOf(job);
  return {
    method: job.method,
    scheme,
    authority,
    target,
    headers: {
      lookup: (name) => {
        const [found, ...more] = all.filter((header) => header.name === name);
        if (more.length > 0) return { kind: 'ambiguous' };
        return found === undefined ? { kind: 'absent' } : { kind: 'single', value: found.value };
      },
      values: (name) => all.filter((header) => header.name === name).map(({ value }) => value),
      names: () => all.map(({ name }) => name),
      lines: () => all.map(({ name, value }) => [name, value]),
    },
    body: body === undefined ? { kind: 'none' } : { kind: 'exact', bytes: body },
    removesProofs: true,
  };
}

function verdictsOn(answers: readonly SdkAnswer[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const passports = createPassportCache();
  for (const [i, job] of jobs.entries()) {
    const { error, headers = [] } = answers[i] ?? {};
    const inputs = { nowSeconds: job.now, realtimeStalenessSeconds: 10, passports };
    const verdict = error === undefined ? decide(factsOf(job, headers), snapshot, inputs, {}) : undefined;
    const result =
      verdict === undefined
        ? 'not signed'
        : verdict.kind === 'verified'
          ? 'verified'
          : `${verdict.reason} ${verdict.detail}`;
    counts.set(result, (counts.get(result) ?? 0) + 1);
  }
  return counts;
}

it.each(PROOF_FORMATS)(
  `has requests of every kind, and the verifier accepts %s of the engine (seed ${SEED})`,
  (proof) => {
    const answers = reference.get(proof) ?? [];
    const codes = new Set(answers.flatMap(({ error }) => error ?? []));
    // DPoP covers no headers.
    const ofHeaders = proof === 'dpop' ? [] : ['header_invalid', 'header_missing', 'header_repeated'];
    expect([...codes].sort()).toEqual([
      ...ofHeaders,
      'method_invalid',
      'origin_not_allowed',
      'profile_not_found',
      'url_invalid',
      'url_not_canonical',
    ]);
    const verdicts = verdictsOn(answers);
    expect([...verdicts.keys()].sort()).toEqual(['not signed', 'verified']);
    expect(verdicts.get('verified')).toBeGreaterThan(0.9 * COUNT);
  },
);

describe.each(SDK_DRIVERS.map((driver) => [driver.language, driver] as const))('%s', (_, driver) => {
  if (driver.missing !== undefined) {
    it.skip(`cannot run here: ${driver.missing}`, () => undefined);
    return;
  }
  beforeAll(() => driver.prepare(), PREPARE_TIMEOUT_MS);

  it.each(PROOF_FORMATS)('makes the same headers and errors with %s', async (proof) => {
    const expected = reference.get(proof) ?? [];
    const answers = await driver.sign(keyFile, jobs, proof);
    const differing = answers.filter((answer, i) => JSON.stringify(answer) !== JSON.stringify(expected[i]));
    expect(differing.slice(0, 3).map(({ id }) => [jobs[id], answers[id], expected[id]])).toEqual([]);
    expect(verdictsOn(answers)).toEqual(verdictsOn(expected));
  });
});
