/**
 * Explaining captured requests by a bundle that Control published: each form of a capture, revisions, proofs that could
 * still be used, and that nothing of a capture remains.
 */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { registerExplanationRoute } from '../../../src/control/api/routes/explanations-api.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { Explanations } from '../../../src/control/explanations/explanations.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { type Answer, ApiFixture } from '../../support/control/api-fixture.ts';
import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { type RequestEdits, type SignedRequest, signRequest } from '../../support/fixtures/signed-request.ts';
import { KEY_ID, newSiteKeys } from '../../support/fixtures/snapshot.ts';
import { ControlWorld, ORDERS_READ, SITE } from '../publishing/publishing-fixture.ts';

const keys = { ...newSiteKeys(), billing: generateSigningKey('Ed25519') };
/** Seconds after which no verifier accepts a proof: its life, and the greatest skew that a site may allow. */
const OVER_SECONDS = 60 + 60;

let world: ControlWorld;
let control: ApiFixture;
let explanations: Explanations;
let publisher: SitePublisher;

beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  explanations = new Explanations({ store, nowMs: clock.nowMs });
  control = await ApiFixture.open({
    openStore: async () => store,
    extend: (app) => registerExplanationRoute(app, explanations),
  });
  await world.putClient('billing', { orders: 'read' });
  await world.putRoute(ORDERS_READ);
  const row = { ...world.keyRow('billing', keys.billing.publicKey, 3600), keyId: KEY_ID.billing };
  await world.change(async (tx) => {
    await tx.keys.add(row);
    await tx.changes.record(SITE, { kind: 'key', keyId: row.keyId }, world.clock.ms);
  });
  await publish();
});
afterEach(async () => {
  await control.app.close();
  await rm(control.directory, { recursive: true });
  await world.close();
});

async function publish(): Promise<number> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return (await world.site()).revision;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}

/** The request of the key that the site has. */
function sign(edits: RequestEdits = {}): SignedRequest {
  const plan = { caller: 'billing', route: 'orders-read', nowSeconds: world.clock.seconds } as const;
  const claims: RequestEdits['claims'] = (draft) => {
    delete draft.provenance;
    delete draft.context;
  };
  return signRequest(keys, plan, { claims, ...edits });
}

/** At which the target was changed, under way, to one that must not be shown. */
const CHANGED = '/v1/orders/secret-order';
const changed: RequestEdits = { received: (wire) => ({ ...wire, target: CHANGED }) };

function captureOf({ wire }: SignedRequest, more: object = {}) {
  const { authority, headers, method, scheme, target: path } = wire;
  const lines = headers.map(({ name, value }) => `${name}: ${value}`);
  return { method, scheme, authority, path, headers: lines, ...more };
}

const event = (more: object = {}) => ({
  event: 'proofgate.decision',
  time: '2026-11-21T04:00:01Z',
  outcome: 'denied',
  reason: 'request_binding_mismatch',
  detail: 'target',
  decision_id: '5d9279f4-3c12-4ca5-8bc3-42ef88789323',
  ...more,
});

function ask(request: unknown, more: object = {}): Promise<Answer> {
  const text = typeof request === 'string' ? request : JSON.stringify(request);
  return control.call('POST', `/v1/sites/${SITE}/explanations`, { body: { request: text, ...more } });
}

/** The differing lines of the transcript. */
function differing({ json }: Answer): readonly unknown[] {
  const { transcript } = json.report as { transcript: readonly { line: string; equal: boolean }[] };
  return transcript.filter(({ equal }) => !equal).map(({ line }) => line);
}

const later = () => {
  world.clock.ms += OVER_SECONDS * 1000;
};
const MADE_AT = '2026-11-21T04:00:01Z';
const MISMATCH = { outcome: 'denied', reason: 'request_binding_mismatch', detail: 'target' };

describe('a capture', () => {
  it('with its audit event is explained at the time of the event', async () => {
    const capture = captureOf(sign(changed), { event: event() });
    later();
    const answer = await ask(capture);
    expect(answer).toMatchObject({
      status: 200,
      json: {
        explained_by: 'control',
        report: {
          decision: MISMATCH,
          at: MADE_AT,
          at_source: 'event',
          bundle: { auth_site: SITE, signatures: 'valid' },
          recorded: { comparison: 'agrees' },
          rules: [{ rule: 0, matches: true }],
          values: 'redacted',
        },
      },
    });
    expect(differing(answer)).toEqual(['target']);
    expect((answer.json.report as { steps: readonly object[] }).steps).toHaveLength(7);
    expect(String(answer.json.lines)).toContain('request_binding_mismatch (target)');
    expect(answer.text).not.toContain('secret-order');
  });

  it('without a moment is explained now, with the decision of then', async () => {
    const capture = captureOf(sign());
    later();
    const { json } = await ask(capture);
    expect(json.report).toMatchObject({
      decision: { detail: 'proof_expired' },
      at_source: 'now',
      when_made: { decision: { outcome: 'allowed' } },
    });
    expect((await ask(capture, { at: MADE_AT })).json.report).toMatchObject({
      decision: { outcome: 'allowed' },
      at_source: 'flag',
    });
  });

  it('that is a CheckRequest', async () => {
    const check = JSON.parse(JSON.stringify(rawCheckRequest(sign(changed).wire)), (_, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('base64') : value,
    );
    check.attributes.request.time = MADE_AT;
    later();
    const answer = await ask(check);
    expect(answer.json.report).toMatchObject({ decision: MISMATCH, at_source: 'check_request' });
    expect(differing(answer)).toEqual(['target']);
  });

  it('that is the output of sign', async () => {
    const { headers } = sign().wire;
    later();
    const output = Object.fromEntries(headers.map(({ name, value }) => [name, value]));
    expect((await ask(output, { at: MADE_AT })).json.report).toMatchObject({
      decision: { outcome: 'allowed' },
      request: { as_signed: true },
    });
  });

  it('that is an audit event alone', async () => {
    const { json } = await ask(event({ route_id: 'orders-read' }));
    expect(json.report).toMatchObject({
      decision: MISMATCH,
      route: { route_id: 'orders-read', method: 'GET' },
      transcript: [],
    });
    const unknown = await ask(event({ reason: 'of_tomorrow' }));
    expect(unknown).toMatchObject({ status: 422, code: 'request_invalid' });
  });

  it('of a denial, which has the explanation alone', async () => {
    const capture = captureOf(sign(changed), { event: event() });
    later();
    const { report } = (await ask(capture)).json;
    const denial = { event: event(), explanation: report, text: ['DENIED'], header_lengths: [] };
    expect((await ask(denial)).json).toEqual({ explained_by: 'verifier', report, lines: ['DENIED'] });
    const foreign = { ...denial, explanation: { decision: { outcome: 'denied' }, steps: '<b>' } };
    expect(await ask(foreign)).toMatchObject({ status: 422, code: 'request_invalid' });
    // With the request it is explained again.
    const { json } = await ask({ ...denial, ...capture, body: '' });
    expect(json).toMatchObject({ explained_by: 'control', report: { decision: MISMATCH } });
  });

  it.each([
    ['is no JSON', '{', {}, 422, 'request_not_json'],
    ['has a member twice', '{"method":"GET","method":"GET"}', {}, 422, 'request_not_json'],
    ['lacks members', {}, {}, 422, 'request_invalid'],
    ['has unknown members', { secret: 1 }, {}, 422, 'request_invalid'],
    ['is explained at no time', event(), { at: '2026-13-01T00:00:00Z' }, 400, 'request_malformed'],
    ['is too large', 'x'.repeat(256 * 1024), {}, 413, 'request_too_large'],
  ])('that %s is rejected', async (_, capture, more, status, code) => {
    expect(await ask(capture, more)).toMatchObject({ status, code });
  });
});

describe('a proof that could still be used', () => {
  it('is rejected until no verifier accepts it', async () => {
    const capture = captureOf(sign());
    world.clock.ms += (OVER_SECONDS - 1) * 1000;
    // Whatever moment is to be explained.
    expect(await ask(capture, { at: '2026-11-22T00:00:00Z' })).toMatchObject({
      status: 422,
      code: 'proof_not_expired',
      headers: { 'retry-after': '1' },
    });
    world.clock.ms += 1000;
    expect((await ask(capture)).status).toBe(200);
  });

  it('is none without its signature', async () => {
    const { headers, ...rest } = captureOf(sign());
    const unsigned = headers.filter((line) => !line.startsWith('x-proofgate-signature'));
    expect((await ask({ ...rest, headers: unsigned })).json.report).toMatchObject({
      decision: { detail: 'proof_missing' },
    });
  });

  const transcriptOf = ({ transcriptText }: SignedRequest) =>
    Buffer.from(transcriptText, 'latin1').toString('base64url');
  it.each([
    ['beside one that has expired', (live: string, old: string) => [live, old]],
    ['joined with another', (live: string, old: string) => [`${old}, ${live}`]],
    ['that a proxy cut off', (live: string) => [live.slice(0, 40)]],
    ['that a proxy damaged', (live: string) => [`${live}A`]],
  ])('%s is rejected, too', async (_, valuesOf) => {
    const old = transcriptOf(sign());
    later();
    const live = sign();
    const lines = valuesOf(transcriptOf(live), old).map((value) => `X-Proofgate-Transcript: ${value}`);
    const { headers, ...rest } = captureOf(live);
    const others = headers.filter((line) => !line.startsWith('x-proofgate-transcript'));
    const capture = { ...rest, headers: [...others, ...lines] };
    expect(await ask(capture)).toMatchObject({ status: 422, code: 'proof_not_expired' });
  });
});

describe('the revision', () => {
  it('is the one of the event, the wanted one, or the newest', async () => {
    const first = (await world.site()).revision;
    const capture = captureOf(sign());
    await world.revokeKey(KEY_ID.billing);
    const second = await publish();
    later();
    expect(second).toBeGreaterThan(first);
    const decisionWith = async (request: object, more: object = {}) => {
      const { report } = (await ask(request, { at: MADE_AT, ...more })).json;
      const { bundle, decision } = report as {
        bundle: { revision: number };
        decision: { outcome: string; detail: string | null };
      };
      return [bundle.revision, decision.detail ?? decision.outcome];
    };
    const recorded = { ...capture, event: event({ bundle_revision: first }) };
    expect(await decisionWith(capture)).toEqual([second, 'key_revoked']);
    expect(await decisionWith(capture, { revision: first })).toEqual([first, 'allowed']);
    expect(await decisionWith(recorded)).toEqual([first, 'allowed']);
    expect(await decisionWith(recorded, { revision: second })).toEqual([second, 'key_revoked']);
    const forgotten = { ...capture, event: event({ bundle_revision: second + 5 }) };
    expect(await decisionWith(forgotten)).toEqual([second, 'key_revoked']);
    const unknown = await ask(capture, { revision: second + 5 });
    expect(unknown).toMatchObject({ status: 404, code: 'revision_not_held' });
  });

  it('of a site that published nothing is not held', async () => {
    await world.addSite('empty', 'https://control.shop.example/sites/empty');
    const body = { request: JSON.stringify(event()) };
    const answer = await control.call('POST', '/v1/sites/empty/explanations', { body });
    expect(answer).toMatchObject({ status: 404, code: 'revision_not_held' });
  });
});

const AUDIT = '/v1/audit-events';

it('remains nowhere: no log, no audit trail, no database, no problem', async () => {
  const kept = sign(changed);
  const { headers } = captureOf(kept);
  const capture = captureOf(kept, { body: 'secret-body' });
  const before = (await control.expect(200, 'GET', AUDIT)).json;
  const answers = [
    await ask(capture),
    await ask({ ...capture, 'secret-member': 'secret-value' }),
    await ask(`secret-text ${JSON.stringify(capture)}`),
  ];
  later();
  answers.push(await ask(capture), await ask(capture, { at: 'secret-moment' }));
  expect(answers.map(({ status }) => status)).toEqual([422, 422, 422, 200, 400]);
  const files = (await readdir(world.directory)).map((name) =>
    readFile(join(world.directory, name), 'latin1'),
  );
  const said = [...control.log, ...answers.map(({ text }) => text), ...(await Promise.all(files))].join('\n');
  const secrets = headers.map(
    (line) =>
      line
        .slice(line.indexOf(':') + 2)
        .split('.')
        .at(-1) ?? '',
  );
  expect(['secret-', kept.jti, ...secrets].filter((secret) => said.includes(secret))).toEqual([]);
  expect(control.log.filter((line) => line.includes('explanations'))).toHaveLength(5);
  expect((await control.expect(200, 'GET', AUDIT)).json).toEqual(before);
});

it('explains one request at a time, and lets few wait', async () => {
  const asked = { request: JSON.stringify(event()) };
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, () =>
      explanations.explain(SITE, asked).then(
        () => 'explained',
        (error: unknown) => (error instanceof ApiProblem ? error.code : String(error)),
      ),
    ),
  );
  expect(outcomes).toEqual([...Array(4).fill('explained'), ...Array(2).fill('rate_limited')]);
  expect(await explanations.explain(SITE, asked)).toMatchObject({ explained_by: 'control' });
});
