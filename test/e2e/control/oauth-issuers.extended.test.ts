/**
 * Access tokens of an OAuth authorization server on a site of Control, as processes: the server's metadata and key set over TLS,
 * Control that fetches them, a verifier that follows Control, and DPoP proofs.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { ALLOWED, FollowedSite, type FollowingVerifier } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { type IssuerSigner, makeSigner, signCompact } from '../../support/fixtures/token-signer.ts';
import { encodeCheckRequest } from '../../support/harness/check-client.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { signDpop } from '../../support/protocol/dpop-signer.ts';
import { waitFor } from '../../support/wait.ts';

const AUTHORITY = 'api.shop.example';
const PATH = '/v1/dpop/7';
const UNKNOWN = 'invalid_request_proof/key_unknown 401';
const holder = generateSigningKey('ES256');

let site: FollowedSite;
let verifier: FollowingVerifier;
let workers: FollowingVerifier;
let redis: TestRedisServer;
let server: ServiceAccountIssuer;
beforeAll(async () => {
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  site = await FollowedSite.start({ targets: ['gateway', 'workers'] });
  server = site.stage.issuer;
  verifier = await site.startVerifier({ program: undefined, target: 'gateway', replay: 'memory' });
  const flags = ['--workers', '2'];
  workers = await site.startVerifier({ program: undefined, target: 'workers', replay: redis.url, flags });
});
afterAll(async () => {
  await site?.stop();
  await redis?.stop();
});

/** Declares the server, and a route that takes its tokens. A change makes Control fetch its keys again. */
async function apply(members: object): Promise<void> {
  const file = join(site.stage.directory, 'site.yaml');
  const { routes, ...declared } = parse(await readFile(file, 'utf8'));
  const { issuer } = server;
  const route = {
    route_id: 'dpop-read',
    ...{ method: 'GET', path_template: '/v1/dpop/{id}', audience: 'https://api.shop.example' },
    ...{ resource: 'orders', freshness_class: 'realtime', oauth_revocation: 'token_lifetime' },
    ...{ accepted_proofs: ['dpop'], unbound: ['route', 'site'] },
    allowed_sources: [
      {
        issuer,
        trust_domain: 'login.example',
        subject_exact: 'sub:orders',
        required_key_binding: 'software',
      },
    ],
  };
  const oauth_issuers = [{ issuer, trust_domain: 'login.example', ...members }];
  const others = routes.filter(({ route_id: id }: { readonly route_id: string }) => id !== route.route_id);
  await writeFile(file, JSON.stringify({ ...declared, oauth_issuers, routes: [...others, route] }));
  await site.stage.ctl('apply', '-f', file, '--token-dir', site.stage.directory);
}

/** What the verifier says to a token that the signer signed now. */
function outcome(signer: IssuerSigner, at = verifier): Promise<string> {
  const iat = Math.floor(Date.now() / 1000);
  const token = signCompact(
    { typ: 'at+jwt', alg: signer.algorithm, kid: signer.kid },
    {
      ...{ iss: server.issuer, sub: 'orders', aud: 'https://api.shop.example', client_id: 'orders' },
      ...{ iat, exp: iat + 60, cnf: { jkt: holder.publicKey.thumbprint } },
    },
    signer,
  );
  const url = `http://${AUTHORITY}${PATH}`;
  const proof = signDpop({ key: holder, method: 'GET', url, token, issuedAtSeconds: iat });
  const headers = [
    { name: 'authorization', value: `DPoP ${token}` },
    { name: 'dpop', value: proof },
  ];
  const place = { scheme: 'http', authority: AUTHORITY, method: 'GET', target: PATH } as const;
  return at.present(encodeCheckRequest(rawCheckRequest({ ...place, headers, body: { kind: 'none' } })));
}

const awaitOutcome = (signer: IssuerSigner, expected: string, at = verifier) =>
  waitFor(expected, async () => ((await outcome(signer, at)) === expected ? true : undefined));

async function kids(): Promise<readonly string[]> {
  const [{ keys = [] } = {}] = await site.stage.list('oauth-issuers');
  return (keys as readonly { readonly kid: string }[]).map(({ kid }) => kid);
}

it('a token of the server is allowed, and none that another key signed', async () => {
  await apply({});
  await awaitOutcome(server.signer, ALLOWED);
  const { algorithm, kid } = server.signer;
  const attacker = makeSigner(algorithm);
  expect(await outcome(attacker)).toBe(UNKNOWN);
  expect(await outcome({ ...attacker, kid })).toBe('invalid_request_proof/passport_signature 401');
  expect(await kids()).toEqual([kid]);
});

it('a new key of the server counts, and a withdrawn one does not', async () => {
  const old = server.signer;
  const next = server.rotate();
  expect(await outcome(next)).toBe(UNKNOWN);
  await apply({ max_token_ttl_seconds: 120 });
  await awaitOutcome(next, ALLOWED);
  expect(await outcome(old)).toBe(ALLOWED);
  server.dropOldKeys();
  await apply({ max_token_ttl_seconds: 60 });
  await awaitOutcome(old, UNKNOWN);
  expect(await outcome(next)).toBe(ALLOWED);
  expect(await kids()).toEqual([next.kid]);
});

describe('a new key of the server counts within seconds of its first token', () => {
  /** Less than Control's schedule, 300 s, which begins again with each fetch. */
  const SOON_MS = 120_000;

  async function expectSoon(at: FollowingVerifier): Promise<void> {
    const { keys: before } = server.requests;
    await apply({ max_token_ttl_seconds: 100 + before });
    await waitFor('a fetch', () => server.requests.keys > before);
    const fetchedMs = performance.now();
    await awaitOutcome(server.signer, ALLOWED, at);
    const next = server.rotate();
    expect(await outcome(next, at)).toBe(UNKNOWN);
    await awaitOutcome(next, ALLOWED, at);
    expect(performance.now() - fetchedMs).toBeLessThan(SOON_MS);
  }

  it('at a verifier', () => expectSoon(verifier));

  it('at one with workers', () => expectSoon(workers));
});

it('a blocked caller is denied before its token ends', async () => {
  const caller = ['--site', SITE_ID, '--issuer', server.issuer, '--subject', 'sub:orders'];
  await site.stage.ctl('block-caller', ...caller);
  await awaitOutcome(server.signer, 'invalid_request_proof/subject_blocked 401');
  await site.stage.ctl('unblock-caller', ...caller);
  await awaitOutcome(server.signer, ALLOWED);
});

it('a removed server has no callers', async () => {
  const found = await site.stage.ctl('get', 'oauth-issuers', server.issuer, '--site', SITE_ID);
  expect(found).toMatchObject({ issuer: server.issuer, published: true });
  await site.stage.ctl('delete', 'oauth-issuers', server.issuer, '--site', SITE_ID, '--yes');
  // Without servers a token is no more than a faulty passport.
  await awaitOutcome(server.signer, 'invalid_request_proof/passport_malformed 401');
});
