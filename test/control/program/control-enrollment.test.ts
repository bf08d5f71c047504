/**
 * Tests all parts of `proofgate control` together: an issuer becomes a source, a token becomes a key, and the key is published
 * in a bundle.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { type JsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { runCli } from '../../support/cli/run-cli.ts';
import { created, makeSite, SITE } from '../../support/control/control-configuration.ts';
import {
  type ControlProgram,
  readBootstrapToken,
  startControlProgram,
} from '../../support/control/control-program.ts';
import {
  type ServiceAccountIssuer,
  startServiceAccountIssuer,
} from '../../support/fakes/service-account-issuer.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

const AUDIENCE = 'proofgate-shop';

let certificates: TestCertificates;
let issuer: ServiceAccountIssuer;
let folder = '';
let program: ControlProgram;
let token = '';

beforeAll(async () => {
  certificates = await makeCertificates('localhost', 'spiffe://x/y', ['127.0.0.1']);
  issuer = await startServiceAccountIssuer({ certificate: certificates.server, hostname: '127.0.0.1' });
});
afterAll(async () => {
  await issuer.close();
  await certificates.remove();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-control-'));
  const dataDirectory = join(folder, 'data');
  await mkdir(dataDirectory);
  program = await startControlProgram({
    launcher: LAUNCHER,
    dataDirectory,
    flags: [
      ...['--allow-issuer-network', '127.0.0.0/8', '--issuer-ca-file', certificates.ca.certPath],
      ...['--workload-image', 'images.shop.example/proofgate:1', '--log-level', 'debug'],
      // Waits ask often.
      ...['--operator-rate', '1000'],
    ],
  });
  token = await readBootstrapToken(dataDirectory);
  await makeSite(program, token);
});
afterEach(async () => {
  await program.child.stop();
  await rm(folder, { recursive: true });
});

function post(path: string, body?: object) {
  return program.call({ method: 'POST', path, token, ...(body === undefined ? {} : { body }) });
}

/** @returns the source's ID; its first revision is active */
async function activeSource(): Promise<string> {
  const coordinates = { issuer: issuer.issuer, jwks_uri: issuer.jwksUri, audience: AUDIENCE };
  const draft = { kind: 'oidc_jwks', display_name: 'Cluster', ...coordinates };
  const source = created(await post(`/v1/sites/${SITE}/sources`, draft), 'source_id');
  const revision = `/v1/sources/${source}/revisions/1`;
  const validated = await post(`${revision}/validate`);
  expect(validated).toMatchObject({ status: 200, body: { state: 'validated' } });
  const activated = await post(`${revision}/activate`, { expected_scope: validated.body.detected_scope });
  expect(activated.status).toBeLessThan(300);
  await waitFor('the source to be active', async () => {
    const { body } = await program.call({ path: revision, token });
    return body.state === 'active' ? true : undefined;
  });
  return source;
}

async function enrollmentPolicy(source: string): Promise<JsonObject> {
  const policy = {
    display_name: 'Billing',
    source_id: source,
    source_revision: 1,
    client_id: 'billing',
    approval: 'automatic',
    max_key_lifetime_seconds: 3600,
    verified_issuer: issuer.issuer,
    verified_subject: 'system:serviceaccount:prod:billing',
  };
  const policyId = created(await post(`/v1/sites/${SITE}/enrollment-policies`, policy), 'policy_id');
  const command = await program.call({ path: `/v1/enrollment-policies/${policyId}/command`, token });
  expect(command.status).toBe(200);
  return command.body;
}

interface Followed {
  readonly revision: number;
  readonly text: string;
}

/** The answer to a target without a bundle. */
async function bundleOf(targetToken: string, atLeast: number): Promise<Followed> {
  return waitFor(`revision ${atLeast}`, async () => {
    const { status, body } = await program.call({ path: '/v1/targets/self/bundle', token: targetToken });
    if (status !== 200 || typeof body.revision !== 'number' || body.revision < atLeast) return undefined;
    return { revision: body.revision, text: JSON.stringify(body) };
  });
}

it('leads from an issuer to a key that targets receive', async () => {
  const target = await post(`/v1/sites/${SITE}/targets`, { name: 'gateway' });
  expect(target).toMatchObject({ status: 201 });
  const before = await bundleOf(String(target.body.token), 1);
  expect(await program.call({ path: '/v1/targets/self/bundle', token })).toMatchObject({ status: 401 });
  await post(`/v1/targets/${target.body.target_id}/detach`);

  const command = await enrollmentPolicy(await activeSource());
  expect(command).toMatchObject({ control_url: program.url });
  expect(String(command.init_container)).toContain('images.shop.example/proofgate:1');

  const other = await post(`/v1/sites/${SITE}/targets`, { name: 'second' });
  await writeFile(
    join(folder, 'token'),
    issuer.token({ namespace: 'prod', serviceAccount: 'billing', audience: AUDIENCE }),
  );
  const args = [
    'enroll',
    '--control-url',
    program.url,
    '--policy',
    String(command.reference),
    '--output',
    'json',
  ];
  const files = ['--proof-file', 'token', '--private-key-out', 'key.pem'];
  const run = await runCli(LAUNCHER, [...args, ...files], { cwd: folder });
  expect(run).toMatchObject({ exitCode: 0 });
  const enrolled = parseStrictJson(run.stdout) as { readonly key_id: string };
  expect(enrolled).toMatchObject({ status: 'active', key_id: expect.stringMatching(/^dk_/) });

  const after = await waitFor('a bundle that holds the key', async () => {
    const found = await bundleOf(String(other.body.token), before.revision + 1);
    return documentsOf(found.text).includes(enrolled.key_id) ? found : undefined;
  });
  expect(after.revision).toBeGreaterThan(before.revision);

  const { text } = await httpGet(`${program.adminUrl}/metrics`);
  expect(text).toMatch(/^proofgate_control_enrollments_total\{outcome="issued"\} 1$/m);
  expect(text).toMatch(
    /^proofgate_control_requests_total\{route="\/v1\/enrollments",method="POST",status="201"\} 1$/m,
  );
  expect(text).toMatch(/^proofgate_control_publications_total\{kind="bundle"\} [1-9]/m);
  expect(text).toMatch(/^proofgate_control_targets_behind\{site_id="shop-eu-1"\} 1$/m);
  expect(text).toMatch(/^proofgate_control_propagation_lag_seconds\{site_id="shop-eu-1"\} [0-9.]+$/m);
  expect(text).not.toContain(enrolled.key_id);

  const readiness = await program.call({ path: `/v1/derived-keys/${enrolled.key_id}/readiness`, token });
  expect(readiness.status).toBe(200);
  const conditions = readiness.body.conditions as { condition: string; satisfied: boolean }[];
  expect(conditions.map(({ condition, satisfied }) => [condition, satisfied])).toEqual([
    ['derived_key', true],
    ['route_grant', true],
    ['signing_profile', true],
    ['target_acknowledged', false],
    ['version_current', false],
  ]);
  const state = JSON.parse(await readFile(join(folder, 'key.pem.enrollment.json'), 'utf8'));
  expect(JSON.stringify(state)).toContain('orders-read');
});

it('counts refused submissions by their code, and stops while targets wait', async () => {
  const command = await enrollmentPolicy(await activeSource());
  await writeFile(
    join(folder, 'token'),
    issuer.token({ namespace: 'prod', serviceAccount: 'other', audience: AUDIENCE }),
  );
  const args = ['enroll', '--control-url', program.url, '--policy', String(command.reference)];
  const files = ['--proof-file', 'token', '--private-key-out', 'key.pem'];
  const run = await runCli(LAUNCHER, [...args, ...files], { cwd: folder });
  expect(run).toMatchObject({ exitCode: 3, stderr: expect.stringMatching(/^error: token_subject: /) });
  const challenge = {
    policy: 'unknown',
    provider: 'oidc_jwks',
    public_key: generateSigningKey('Ed25519').publicKey.jwk,
  };
  const refusedChallenge = await program.call({
    method: 'POST',
    path: '/v1/enrollments/challenges',
    body: challenge,
  });
  expect(refusedChallenge).toMatchObject({ status: 404, body: { code: 'policy_unknown' } });
  const { text } = await httpGet(`${program.adminUrl}/metrics`);
  expect(text).toMatch(/^proofgate_control_enrollments_total\{outcome="token_subject"\} 1$/m);
  expect(text).toMatch(/^proofgate_control_enrollments_total\{outcome="policy_unknown"\} 1$/m);
  const refused = { event: 'enrollment_refused', auth_site: SITE, policy_id: command.policy_id };
  const logged = program.child.stderrLines.map((line) => JSON.parse(line));
  expect(logged).toContainEqual(expect.objectContaining({ ...refused, code: 'token_subject' }));

  const target = await post(`/v1/sites/${SITE}/targets`, { name: 'gateway' });
  const targetToken = String(target.body.token);
  const { body, headers } = await program.call({ path: '/v1/targets/self/bundle', token: targetToken });
  const where = new URLSearchParams({
    revision: String(body.revision),
    head: String(body.head),
    wait_seconds: '30',
  });
  const waiting = program.call({
    path: `/v1/targets/self/bundle?${where}`,
    token: targetToken,
    headers: { 'if-none-match': String(headers.etag) },
  });
  await waitFor(
    'the poll to be there',
    async () => (await httpGet(`${program.adminUrl}/readyz`)).status === 200 || undefined,
  );
  program.child.signal('SIGTERM');
  const answer = await waiting;
  expect([200, 304]).toContain(answer.status);
  expect(await program.child.exited).toEqual({ code: 0, signal: null });
});

it('shows operators what a policy refuses with, and which target holds its source up', async () => {
  const source = await activeSource();
  const { policy_id: policyId } = await enrollmentPolicy(source);
  const { body: target } = await post(`/v1/sites/${SITE}/targets`, { name: 'gateway-7' });
  const revision = `/v1/sources/${source}/revisions/1`;
  // A target that has never loaded a bundle holds nothing up.
  const targetToken = String(target.token);
  const acknowledged = await waitFor('the target to acknowledge a bundle', async () => {
    const { body } = await program.call({ path: '/v1/targets/self/bundle', token: targetToken });
    if (typeof body.revision !== 'number') return undefined;
    const ack = { revision: body.revision, head: body.head, outcome: 'accepted' };
    const path = '/v1/targets/self/acks';
    const { status } = await program.call({ method: 'POST', path, token: targetToken, body: ack });
    return status === 204 || undefined;
  });
  expect(acknowledged).toBe(true);
  await post(`${revision}/suspend`);
  expect(await post(`${revision}/resume`)).toMatchObject({ body: { state: 'publishing' } });
  const waitingFor = [{ target_id: target.target_id, name: 'gateway-7' }];
  const { etag } = await waitFor('the bundle that lists the source', async () => {
    const { body, headers } = await program.call({ path: revision, token });
    return body.waiting_for === undefined ? undefined : { seen: body.waiting_for, etag: headers.etag };
  });
  // The content changes without a new version.
  const again = await program.call({ path: revision, token, headers: { 'if-none-match': String(etag) } });
  expect(again).toMatchObject({ status: 200, body: { waiting_for: waitingFor } });

  const policy = await program.call({ path: `/v1/enrollment-policies/${String(policyId)}`, token });
  expect(policy.body).toMatchObject({ state: 'active', refuses_with: 'source_not_active' });
  const another = await post(`/v1/sites/${SITE}/enrollment-policies`, {
    ...Object.fromEntries(Object.entries(policy.body).filter(([member]) => CREATION.has(member))),
    display_name: 'Another',
  });
  expect(another).toMatchObject({ status: 409, body: { code: 'source_not_active' } });
  expect(another.body.detail).toContain(`gateway-7 (${String(target.target_id)})`);

  await writeFile(join(folder, 'operator-token'), token, { mode: 0o600 });
  const get = (kind: string) =>
    runCli(
      LAUNCHER,
      [
        ...['ctl', 'get', kind, '--site', SITE, '--control-url', program.url],
        ...['--token-file', 'operator-token'],
      ],
      { cwd: folder },
    );
  expect(columnOf((await get('policies')).stdout, 'REFUSES_WITH')).toBe('source_not_active');
  expect(columnOf((await get('sources')).stdout, 'WAITING_FOR')).toBe('gateway-7');
  await post(`/v1/targets/${String(target.target_id)}/detach`);
  await waitFor('the source to be active', async () => {
    const { body } = await program.call({ path: revision, token });
    return body.state === 'active' ? true : undefined;
  });
  expect(columnOf((await get('policies')).stdout, 'REFUSES_WITH')).toBe('-');
  expect(columnOf((await get('sources')).stdout, 'WAITING_FOR')).toBe('-');
});

const CREATION = new Set([
  ...['source_id', 'source_revision', 'client_id', 'approval', 'max_key_lifetime_seconds'],
  ...['verified_issuer', 'verified_subject'],
]);

/** A cell of a table with one row. */
function columnOf(table: string, column: string): string | undefined {
  const [head = '', row = ''] = table.split('\n');
  return row.slice(head.indexOf(column)).split(/\s/)[0];
}

/** The payloads of all documents in an answer, concatenated. */
function documentsOf(text: string): string {
  return [...text.matchAll(/\\"payload\\":\\"([A-Za-z0-9_-]+)\\"/g)]
    .map(([, payload = '']) => Buffer.from(payload, 'base64url').toString())
    .join('\n');
}
