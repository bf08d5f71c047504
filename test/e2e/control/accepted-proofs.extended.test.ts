/**
 * HTTP Message Signatures on a site of Control, through a real Envoy: a key that Control derived, the npm package
 * http-message-signatures at the caller, and a released verifier that does not know `accepted_proofs`.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { enrolledProfiles } from '../../../src/caller/enroll/enrolled-profiles.ts';
import { readEnrolledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import { headerValues, type WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { ALLOWED, FollowedSite, type FollowingVerifier } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { encodeCheckRequest } from '../../support/harness/check-client.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../support/harness/envoy.ts';
import { closeAtOnce, patient } from '../../support/harness/envoy-config.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { releasesBefore } from '../../support/harness/releases.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { signHttp } from '../../support/protocol/http-signer.ts';
import { waitFor } from '../../support/wait.ts';

const AUTHORITY = 'api.shop.example';
const WITHOUT_MEMBER = '/v1/orders/7';
const KEYED = ['http-message-signatures'];

let site: FollowedSite;
let verifier: FollowingVerifier;
let upstream: Upstream;
let envoy: RunningEnvoy;
let client: WireClient;
let keyFile = '';
let keyId = '';
beforeAll(async () => {
  site = await FollowedSite.start({ targets: ['gateway'] });
  const port = await freePort();
  verifier = await site.startVerifier({ program: undefined, target: 'gateway', replay: 'memory', port });
  upstream = await startUpstream();
  envoy = await startEnvoy(envoyVersions.at(-1) ?? '', {
    verifier: { kind: 'tcp', host: '127.0.0.1', port },
    upstream: { host: upstream.host, port: upstream.port },
    edits: [closeAtOnce, ...patient],
  });
  client = http1Client({ host: envoy.host, port: envoy.port });
});
afterAll(async () => {
  await envoy?.stop();
  await upstream?.stop();
  await site?.stop();
});

/** Declares two more routes of the orders, which accept signatures alone. */
async function apply(targets: readonly string[]): Promise<void> {
  const file = join(site.stage.directory, 'site.yaml');
  const declared = parse(await readFile(file, 'utf8'));
  const [read, write] = ['GET', 'POST'].map((method) =>
    declared.routes.find((route: { readonly method: string }) => route.method === method),
  );
  const keyed = [
    { ...read, route_id: 'signed-read', path_template: '/v1/signed/{id}', accepted_proofs: KEYED },
    { ...write, route_id: 'signed-write', path_template: '/v1/signed', accepted_proofs: KEYED },
  ];
  const others = declared.routes.filter(
    ({ route_id: id }: { readonly route_id: string }) => !id.startsWith('signed-'),
  );
  await writeFile(file, JSON.stringify({ ...declared, targets, routes: [...others, ...keyed] }));
  await site.stage.ctl('apply', '-f', file, '--token-dir', site.stage.directory);
}

interface Request {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  readonly body?: Buffer;
}

const READ: Request = { method: 'GET', target: '/v1/signed/7?fields=id' };
const WRITE: Request = { method: 'POST', target: '/v1/signed', body: Buffer.from('{"item":"book"}') };

/** Signed with the enrolled key, for the moment. */
async function signed({ body, method, target }: Request) {
  const { key } = await readEnrolledKeyFile(keyFile);
  const headers = body === undefined ? {} : { 'content-type': 'application/json' };
  const lines = await signHttp(
    { method, url: `http://${AUTHORITY}${target}`, headers, body },
    { key, keyId, authSite: SITE_ID, createdSeconds: Math.floor(Date.now() / 1000) },
  );
  return {
    ...{ method, target, authority: AUTHORITY, headers: Object.entries(lines) },
    ...(body === undefined ? {} : { body }),
  };
}

/** A valid transcript of the key for the route of {@link READ}, of which Control gives it no profile. */
async function transcript(): Promise<readonly (readonly [string, string])[]> {
  const { state } = await readEnrolledKeyFile(keyFile);
  const { coordinates } = enrolledProfiles(state, {
    keyThumbprint: state.keyThumbprint,
    keyFile,
    nowMs: Date.now(),
  });
  const profile = {
    route_id: 'signed-read',
    method: 'GET',
    path_template: '/v1/signed/{id}',
    audience: 'https://api.shop.example',
    origins: [`http://${AUTHORITY}`],
  };
  const document = {
    auth_site: SITE_ID,
    key_id: keyId,
    issuer: coordinates.issuer,
    trust_domain: coordinates.trustDomain,
    subject: coordinates.subject,
    key_binding: 'software',
    profiles: [profile],
  };
  const file = join(site.stage.directory, 'profiles.json');
  await writeFile(file, JSON.stringify(document));
  const command = ['sign', 'GET', `http://${AUTHORITY}${READ.target}`, '--key', keyFile, '--out', '-'];
  const { stderr, stdout } = await site.stage.run([...command, '--format', 'json', '--profile-file', file]);
  expect(stderr).toBe('');
  return Object.entries(JSON.parse(stdout) as Record<string, string>);
}

/** The same at a verifier without a gateway. */
async function transcriptOutcome(at: FollowingVerifier): Promise<string> {
  const headers = (await transcript()).map(([name, value]) => ({ name, value }));
  const { method, target } = READ;
  const request = { scheme: 'http', authority: AUTHORITY, method, target, headers } as const;
  return at.present(encodeCheckRequest(rawCheckRequest({ ...request, body: { kind: 'none' } })));
}

/** `200`, or `status reason/detail`. */
async function answerTo(request: Awaited<ReturnType<typeof signed>>): Promise<string> {
  const { body, headers, status } = await client.send(request);
  if (status === 200) return '200';
  const { detail } = JSON.parse(body.toString()) as { readonly detail?: string };
  const [reason] = headerValues(headers, 'x-proofgate-reason');
  return detail === undefined ? `${status} ${reason}` : `${status} ${reason}/${detail}`;
}

const awaitAnswer = (expected: string) =>
  waitFor(`${expected} to a signed request`, async () =>
    (await answerTo(await signed(READ))) === expected ? true : undefined,
  );

const overview = async () => (await site.stage.ctl('get', 'overview', SITE_ID)).accepted_proofs;

it('what a library signs with an enrolled key is allowed', async () => {
  await apply(['gateway']);
  ({ keyFile, keyId } = await site.stage.enroll('billing'));
  await awaitAnswer('200');
  upstream.clear();
  for (const request of [READ, WRITE]) expect(await answerTo(await signed(request))).toBe('200');
  for (const { headers } of upstream.requests) {
    const valuesOf = (name: string) => headerValues(headers, name);
    expect(valuesOf('x-proofgate-proof')).toEqual(KEYED);
    expect(valuesOf('x-proofgate-key-id')).toEqual([keyId]);
    expect([valuesOf('signature'), valuesOf('signature-input')]).toEqual([[], []]);
  }
  expect(await overview()).toEqual({});
});

it('a changed or repeated request is denied', async () => {
  const request = await signed(WRITE);
  upstream.clear();
  expect(await answerTo({ ...request, body: Buffer.from('{"item":"cash"}') })).toBe(
    '403 request_binding_mismatch/content-digest',
  );
  const read = await signed(READ);
  expect(await answerTo({ ...read, target: '/v1/signed/8?fields=id' })).toBe(
    '401 invalid_request_proof/proof_signature',
  );
  expect(upstream.requests).toEqual([]);
  expect([await answerTo(request), await answerTo(request)]).toEqual(['200', '403 jti_replay']);
});

it('a route without the member denies it, and allows the key’s transcripts', async () => {
  const request = await signed({ method: 'GET', target: WITHOUT_MEMBER });
  expect(await answerTo(request)).toBe('401 invalid_request_proof/authorization_missing');
  await site.awaitOutcome(verifier, keyFile, ALLOWED);
});

it('a route that accepts signatures alone denies a transcript', async () => {
  expect(await transcriptOutcome(verifier)).toBe('invalid_request_proof/proof_missing 401');
});

it('the key has no signing profile of a route that accepts no transcript', async () => {
  const { state } = await readEnrolledKeyFile(keyFile);
  const names = JSON.stringify(state);
  expect(names).toContain('orders-read');
  expect(names).not.toContain('signed-read');
});

it('is denied everywhere once an older verifier joins, until that leaves, while transcripts pass', async () => {
  const newest = releasesBefore('0.4.0').at(-1);
  await apply(['gateway', 'late']);
  expect(await answerTo(await signed(READ))).toBe('200');
  const late = await site.startVerifier({ program: newest?.program, target: 'late', replay: 'memory' });
  await site.awaitOutcome(late, keyFile, ALLOWED);
  await awaitAnswer('401 invalid_request_proof/authorization_missing');
  for (const each of [verifier, late]) {
    expect(await transcriptOutcome(each)).toBe('bundle_freshness_unknown 503');
  }
  await site.awaitOutcome(verifier, keyFile, ALLOWED);
  expect(await overview()).toMatchObject({ withheld_for: [{ name: 'late' }] });
  const [target] = (await site.stage.list('targets')).filter(({ name }) => name === 'late');
  await site.stage.ctl('detach', String(target?.target_id));
  await late.stop();
  await awaitAnswer('200');
});
