/** Tests sources and enrollment over HTTP: statuses, ETags, problems, permissions. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ControlClient } from '../../../src/caller/enroll/control-client.ts';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import { ServiceHttp } from '../../../src/caller/service/service-http.ts';
import { registerEnrollmentPlaneRoutes } from '../../../src/control/api/routes/enrollments-api.ts';
import {
  createEnrollmentPlane,
  type EnrollmentPlane,
} from '../../../src/control/enrollment/enrollment-plane.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { POLL_SCHEME, pollText } from '../../../src/protocol/enrollment.ts';
import { Redacted } from '../../../src/protocol/redacted.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import {
  ALLOWED_SOURCES,
  type Answer,
  type ApiFixture,
  itemsOf,
  ROUTE_DEFINITION,
  textIn,
  ApiFixture as World,
} from '../../support/control/api-fixture.ts';
import { IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import {
  CONTROL_URL,
  ed25519Jwk,
  newKey,
  PROFILE,
  publishingOf,
  SUBJECT,
  submissionOf,
} from './enrollment-fixture.ts';

const SITE = 'shop-eu-1';
const OTHER_SITE = 'shop-us-1';
const AUTOMATIC = 'automatic';

let issuers: IssuerEnvironment;
let issuer: ServiceAccountIssuer;
let world: ApiFixture;
let plane: EnrollmentPlane;

beforeAll(async () => {
  issuers = await IssuerEnvironment.start();
  issuer = await issuers.issuer();
  world = await World.open({
    extend: (app, { store, nowMs }) => {
      plane = createEnrollmentPlane({
        store,
        nowMs,
        masterKeys: MasterKeys.random(),
        fetcher: issuers.fetcher(),
        publicUrls: [CONTROL_URL],
        ...publishingOf(store, nowMs),
        report: (error) => {
          throw error;
        },
      });
      registerEnrollmentPlaneRoutes(app, plane);
    },
  });
  for (const site of [SITE, OTHER_SITE]) {
    await world.shop(site);
    const body = { client_id: 'billing', subject: 'client:billing' };
    await world.expect(201, 'POST', `/v1/sites/${site}/clients`, { body });
    const grant = { body: { access: 'read' } };
    await world.expect(201, 'PUT', `/v1/sites/${site}/clients/billing/grants/orders`, grant);
    const routes = `/v1/sites/${site}/routes`;
    await world.expect(201, 'POST', routes, {
      body: { route_id: 'orders-read', definition: ROUTE_DEFINITION },
    });
    const [allowed] = ALLOWED_SOURCES;
    const issuerUrl = `https://control.shop.example/sites/${site}`;
    const sources = { allowed_sources: [{ ...allowed, issuer: issuerUrl }] };
    await world.expect(201, 'PUT', `${routes}/orders-read/sources`, { body: sources });
  }
});
afterAll(async () => {
  await plane.sources.lifecycle.untilIdle();
  await world.close();
  await issuers.close();
});

const sourceBody = (audience: string) => ({
  kind: 'oidc_jwks',
  display_name: 'cluster',
  issuer: issuer.issuer,
  jwks_uri: issuer.jwksUri,
  audience,
});

/** @returns the path of its active revision */
async function activeSource(audience: string): Promise<{ id: string; path: string }> {
  const created = await world.expect(201, 'POST', `/v1/sites/${SITE}/sources`, {
    body: sourceBody(audience),
  });
  const id = textIn(created, 'source_id');
  const path = `/v1/sources/${id}/revisions/1`;
  const validated = await world.expect(200, 'POST', `${path}/validate`);
  const body = { expected_scope: textIn(validated, 'detected_scope') };
  expect((await world.expect(200, 'POST', `${path}/activate`, { body })).json.state).toBe('activating');
  await plane.sources.lifecycle.untilIdle();
  expect((await world.expect(200, 'GET', path)).json.state).toBe('publishing');
  // Simulates the publisher when it waits for no target.
  await world.store.writeUnaudited(undefined, async (tx) => {
    const row = await tx.sourceRevisions.find(id, 1);
    if (row === undefined) throw new Error('no revision');
    await tx.sourceRevisions.change(row, { state: 'active' }, world.ms);
  });
  return { id, path };
}

const policyBody = (sourceId: string, approval = AUTOMATIC) => ({
  display_name: 'billing',
  source_id: sourceId,
  source_revision: 1,
  client_id: 'billing',
  approval,
  max_key_lifetime_seconds: 3600,
  verified_issuer: issuer.issuer,
  verified_subject: SUBJECT,
});

function policyOf(sourceId: string, approval = AUTOMATIC): Promise<Answer> {
  const body = policyBody(sourceId, approval);
  return world.expect(201, 'POST', `/v1/sites/${SITE}/enrollment-policies`, { body });
}

const anonymous = { token: '' };

async function submit(
  reference: string,
  key: SigningKey,
  audience: string,
): Promise<{ body: object; answer: Answer }> {
  const body = { policy: reference, provider: 'oidc_jwks', public_key: ed25519Jwk(key) };
  const challenge = await world.expect(201, 'POST', '/v1/enrollments/challenges', { ...anonymous, body });
  expect(Object.keys(challenge.json).toSorted()).toEqual([
    'auth_site',
    'challenge',
    'challenge_id',
    'expires_at',
  ]);
  const applied = {
    key,
    policyReference: reference,
    challenge: {
      challenge_id: textIn(challenge, 'challenge_id'),
      challenge: textIn(challenge, 'challenge'),
      auth_site: SITE,
      expires_at: textIn(challenge, 'expires_at'),
    },
  };
  const submission = submissionOf(applied, issuer.token({ audience, nowMs: world.ms }));
  return {
    body: submission,
    answer: await world.call('POST', '/v1/enrollments', { ...anonymous, body: submission }),
  };
}

function asKey(enrollmentId: string, key: SigningKey) {
  const seconds = Math.floor(world.ms / 1000);
  const signature = signMessage('Ed25519', key.privateKey, pollText(enrollmentId, seconds));
  const authorization = `${POLL_SCHEME} ${seconds}.${signature.toString('base64url')}`;
  return { ...anonymous, headers: { authorization } };
}

test('from a draft to a key that is revoked', async () => {
  const { id } = await activeSource('whole-way');
  const policy = await policyOf(id);
  const reference = textIn(policy, 'reference');
  const policyPath = `/v1/enrollment-policies/${textIn(policy, 'policy_id')}`;
  expect(policy.headers.location).toBe(policyPath);
  expect(textIn(await world.expect(200, 'GET', `${policyPath}/command`), 'command')).toContain(reference);

  const key = newKey();
  const { body, answer: first } = await submit(reference, key, 'whole-way');
  expect([first.status, first.json.state]).toEqual([201, 'issued']);
  const enrollmentId = textIn(first, 'enrollment_id');
  expect(first.headers.location).toBe(`/v1/enrollments/${enrollmentId}`);
  expect(first.headers['cache-control']).toBe('no-store');
  const again = await world.call('POST', '/v1/enrollments', { ...anonymous, body });
  expect([again.status, again.json]).toEqual([200, first.json]);

  const path = `/v1/enrollments/${enrollmentId}`;
  expect((await world.call('GET', path, asKey(enrollmentId, key))).json).toEqual(first.json);
  expect((await world.call('GET', path, asKey(enrollmentId, newKey()))).code).toBe('poll_unauthorized');
  expect((await world.call('GET', `${path}/readiness`, asKey(enrollmentId, key))).json).toMatchObject({
    ready: false,
    conditions: [{ condition: 'derived_key', state: 'active', satisfied: true }, {}, {}, {}, {}],
  });
  const seen = await world.expect(200, 'GET', path);
  expect(seen.json).toMatchObject({ state: 'issued', verified_subject: SUBJECT });
  expect(seen.headers.etag).toBe('"1"');

  const keyId = textIn(seen, 'key_id');
  const revoked = await world.expect(200, 'POST', `/v1/derived-keys/${keyId}/revoke`, {
    body: { reason: 'leaked', block_subject: true },
  });
  expect(revoked.json).toMatchObject({
    revoked_key_ids: [keyId],
    subject_blocked: true,
    key: { status: 'revoked' },
  });
  const twice = await world.call('POST', `/v1/derived-keys/${keyId}/revoke`);
  expect([twice.status, twice.code]).toEqual([409, 'key_state_conflict']);
  const refused = await submitRefused(reference, key);
  expect([refused.status, refused.code]).toEqual([403, 'subject_blocked']);
  const blockedPath = `/v1/sites/${SITE}/blocked-subjects`;
  const blocked = itemsOf(await world.expect(200, 'GET', blockedPath));
  expect(blocked).toEqual([expect.objectContaining({ issuer: issuer.issuer, subject: SUBJECT })]);
  const another = { body: { issuer: issuer.issuer, subject: `${SUBJECT}-2` }, key: 'block-once' };
  const made = await world.expect(201, 'POST', blockedPath, another);
  expect((await world.expect(201, 'POST', blockedPath, another)).headers['idempotency-replayed']).toBe(
    'true',
  );
  expect((await world.call('POST', blockedPath, { body: another.body })).code).toBe('already_exists');
  const page = await world.expect(200, 'GET', `${blockedPath}?limit=1`);
  const rest = await world.expect(200, 'GET', `${blockedPath}?cursor=${textIn(page, 'next_cursor')}`);
  expect([...itemsOf(page), ...itemsOf(rest)].map(({ subject }) => subject)).toEqual([
    SUBJECT,
    `${SUBJECT}-2`,
  ]);
  const name = new URLSearchParams({ issuer: issuer.issuer, subject: SUBJECT });
  await world.expect(204, 'DELETE', String(made.headers.location));
  await world.expect(204, 'DELETE', `${blockedPath}?${name}`);
  await world.expect(404, 'DELETE', `${blockedPath}?${name}`);
  expect((await submitRefused(reference, key)).code).toBe('key_revoked');
});

function submitRefused(policy: string, key: SigningKey): Promise<Answer> {
  const body = { policy, provider: 'oidc_jwks', public_key: ed25519Jwk(key) };
  return world.call('POST', '/v1/enrollments/challenges', { ...anonymous, body });
}

test('manual approval', async () => {
  const { id } = await activeSource('manual');
  const policy = await policyOf(id, 'manual');
  const reference = textIn(policy, 'reference');
  const key = newKey();
  const { answer: one } = await submit(reference, key, 'manual');
  const { answer: two } = await submit(reference, newKey(), 'manual');
  expect([one.status, one.json.state, one.json.derived_key]).toEqual([201, 'pending_approval', undefined]);
  const query = `state=pending_approval&policy_id=${textIn(policy, 'policy_id')}`;
  const listed = itemsOf(await world.expect(200, 'GET', `/v1/sites/${SITE}/enrollments?${query}`));
  expect(new Set(listed.map((item) => item.enrollment_id))).toEqual(
    new Set([one, two].map((answer) => textIn(answer, 'enrollment_id'))),
  );
  const path = `/v1/enrollments/${textIn(one, 'enrollment_id')}`;
  const other = `/v1/enrollments/${textIn(two, 'enrollment_id')}`;
  const { etag } = (await world.expect(200, 'GET', path)).headers;
  const seen = { headers: { 'if-match': String(etag) } };
  const approval = { ...seen, body: { reason: 'known' } };
  expect((await world.expect(200, 'POST', `${path}/approve`, approval)).json.state).toBe('issued');
  for (const verb of ['approve', 'deny']) {
    expect((await world.call('POST', `${path}/${verb}`, seen)).code).toBe('precondition_failed');
    expect((await world.call('POST', `${path}/${verb}`)).code).toBe('enrollment_state_conflict');
  }
  const polled = await world.call('GET', path, asKey(textIn(one, 'enrollment_id'), key));
  expect(polled.json).toMatchObject({ state: 'issued', signing_profiles: [PROFILE] });
  const denied = await world.expect(200, 'POST', `${other}/deny`, { body: { reason: 'no' } });
  expect(denied.json).toMatchObject({ state: 'denied', denial_code: 'denied_by_operator' });
});

test('the workload’s own client and this Control understand each other', async () => {
  const { id } = await activeSource('client');
  const policy = textIn(await policyOf(id), 'reference');
  const http = new ServiceHttp({
    url: parseControlUrl(`http://127.0.0.1:${world.port}`),
    caPem: undefined,
  });
  const call = { timeoutMs: 10_000, stop: new AbortController().signal };
  const clientOf = (key: SigningKey) =>
    new ControlClient({ http, target: { controlUrl: CONTROL_URL, policy }, key, nowMs: world.nowMs });
  const key = newKey();
  const client = clientOf(key);
  const challenge = await client.challenge('oidc_jwks', call);
  if (challenge.kind !== 'done') throw new Error('no challenge');
  const workloadToken = new Redacted(issuer.token({ audience: 'client', nowMs: world.ms }));
  const submission = { ...challenge.value, workloadToken };
  const submitted = await client.submit(submission, call);
  expect(submitted).toMatchObject({
    kind: 'done',
    value: { state: 'issued', key: { fingerprint: key.publicKey.thumbprint, status: 'active' } },
  });
  if (submitted.kind !== 'done') throw new Error('not submitted');
  const { enrollmentId } = submitted.value;
  expect(await client.submit(submission, call)).toEqual(submitted);
  expect(await client.poll(enrollmentId, call)).toEqual(submitted);
  expect(await client.readiness(enrollmentId, call)).toMatchObject({
    kind: 'done',
    value: { isReady: false },
  });
  const stranger = clientOf(newKey());
  expect(await stranger.poll(enrollmentId, call)).toEqual({ kind: 'refused', code: 'poll_unauthorized' });
  expect(await stranger.challenge('aws_iid', call)).toEqual({
    kind: 'refused',
    code: 'unsupported_enrollment_provider',
  });
  await http.close();
});

test('problems have their codes and statuses', async () => {
  const { id, path } = await activeSource('problems');
  const reference = textIn(await policyOf(id), 'reference');
  const jwk = ed25519Jwk(newKey());
  const sound = { policy: reference, provider: 'oidc_jwks', public_key: jwk };
  const challenge = (body: object) =>
    world.call('POST', '/v1/enrollments/challenges', { ...anonymous, body });
  const expected: [Answer, number, string][] = [
    [await challenge({ ...sound, provider: 'aws' }), 422, 'unsupported_enrollment_provider'],
    [await challenge({ ...sound, policy: 'epr_none' }), 404, 'policy_unknown'],
    [await challenge({ ...sound, public_key: { ...jwk, x: 'AAAA' } }), 422, 'public_key_invalid'],
    [await challenge({ ...sound, public_key: { ...jwk, d: 'AAAA' } }), 400, 'request_malformed'],
    [await challenge({ ...sound, subject: 'chosen' }), 400, 'request_malformed'],
    [
      await world.call('GET', '/v1/enrollments/enr_none', asKey('enr_none', newKey())),
      404,
      'enrollment_unknown',
    ],
    [await world.call('GET', '/v1/enrollments/enr_none'), 404, 'not_found'],
    [await world.call('GET', '/v1/enrollments/enr_none', anonymous), 401, 'authentication_required'],
    [await world.call('GET', '/v1/enrollments/enr_none/readiness', anonymous), 401, 'poll_unauthorized'],
    [await world.call('POST', `${path}/validate`), 409, 'source_state_conflict'],
    [await world.call('PATCH', path, { body: { audience: 'x' } }), 428, 'precondition_required'],
    [await world.call('DELETE', `/v1/sources/${id}`, { ifMatch: 1 }), 409, 'source_state_conflict'],
    [
      await world.call('POST', `/v1/sites/${SITE}/sources`, {
        body: { ...sourceBody('x'), kind: 'aws_iid' },
      }),
      400,
      'request_malformed',
    ],
    [
      await world.call('POST', `/v1/sites/${OTHER_SITE}/sources`, { body: sourceBody('problems') }),
      409,
      'audience_taken',
    ],
    [await world.call('GET', '/v1/sources/tas_none'), 404, 'not_found'],
    [await world.call('GET', '/v1/sources/tas_none/keys'), 404, 'not_found'],
    [await world.call('GET', `/v1/sources/${id}/revisions/2`), 404, 'not_found'],
    [await world.call('GET', `/v1/sources/${id}/revisions/x`), 400, 'request_malformed'],
    [await world.call('GET', '/v1/derived-keys/dk_none'), 404, 'not_found'],
  ];
  for (const [index, [answer, status, code]] of expected.entries()) {
    expect([index, answer.status, answer.code]).toEqual([index, status, code]);
  }
  for (const seconds of [59, 86_401, 60.5]) {
    const body = { ...policyBody(id), max_key_lifetime_seconds: seconds };
    const answer = await world.call('POST', `/v1/sites/${SITE}/enrollment-policies`, { body });
    expect([seconds, answer.status]).toEqual([seconds, 400]);
  }
});

test('sources, policies and keys come in pages, and changes from what was read', async () => {
  const { id } = await activeSource('pages');
  for (let made = 0; made < 3; made++) await policyOf(id);
  for (const list of ['sources', 'enrollment-policies', 'derived-keys', 'enrollments', 'blocked-subjects']) {
    const path = `/v1/sites/${SITE}/${list}`;
    const whole = itemsOf(await world.expect(200, 'GET', `${path}?limit=200`));
    const paged: unknown[] = [];
    for (let cursor = ''; ; ) {
      const answer = await world.expect(200, 'GET', `${path}?limit=1${cursor}`);
      paged.push(...itemsOf(answer));
      if (answer.json.next_cursor === undefined) break;
      cursor = `&cursor=${textIn(answer, 'next_cursor')}`;
    }
    expect(paged).toEqual(whole);
  }
  const body = { display_name: 'renamed' };
  expect((await world.expect(200, 'PATCH', `/v1/sources/${id}`, { body, ifMatch: 1 })).json).toMatchObject(
    body,
  );
  expect((await world.call('PATCH', `/v1/sources/${id}`, { body, ifMatch: 1 })).code).toBe(
    'precondition_failed',
  );
  const keys = await world.expect(200, 'GET', `/v1/sources/${id}/keys`);
  expect(keys.json.keys).toMatchObject([{ revision: 1, kid: issuer.signer.kid }]);
  const revisions = `/v1/sources/${id}/revisions`;
  const created = await world.expect(201, 'POST', revisions, { body: {}, key: 'second' });
  expect(created.headers.location).toBe(`${revisions}/2`);
  const replayed = await world.expect(201, 'POST', revisions, { body: {}, key: 'second' });
  expect(replayed.headers['idempotency-replayed']).toBe('true');
  await world.expect(204, 'DELETE', `${revisions}/2`, { ifMatch: 1 });
});
