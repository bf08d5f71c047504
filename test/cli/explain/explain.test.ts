/** Tests `proofgate explain`: capture formats, bundle sources, times, exit codes, and invalid input. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signDelta } from '../../../src/bundle/authoring/publishing-documents.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { MemoryMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { putBundle } from '../../support/bundle/bundle-directory.ts';
import { deltaAfter } from '../../support/bundle/deltas.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import { AUTH_SITE, NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { mergedCheckRequest, rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { siteContent } from '../../support/fixtures/snapshot.ts';
import { bundleKey, captureOf, ExplainStage, eventOf, keys, protobufJson } from './explain-fixture.ts';

const AT = '2026-11-21T04:00:00.999Z';
const read = { caller: 'billing', route: 'orders-read' } as const;
const everything = { caller: 'broker', route: 'everything' } as const;

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

describe('forms of a capture', () => {
  it.each([
    ['raw headers, camel case', (wire: Wire) => protobufJson(rawCheckRequest(wire), 'camel', AT)],
    ['raw headers, snake case', (wire: Wire) => protobufJson(rawCheckRequest(wire), 'snake', AT)],
    ['merged headers', (wire: Wire) => protobufJson(mergedCheckRequest(wire), 'camel', AT)],
  ])('a CheckRequest with %s', async (_, capture) => {
    const signed = stage.sign(everything);
    const good = await stage.report(capture(signed.wire));
    expect(good.run).toMatchObject({ exitCode: 0, stderr: '' });
    expect(good.report).toMatchObject({ at_source: 'check_request', decision: { outcome: 'allowed' } });
    const changed = await stage.report(capture({ ...signed.wire, target: '/v1/everything/18?x=%20' }));
    expect(changed.run.exitCode).toBe(1);
    expect(changed.report.decision).toMatchObject({ reason: 'request_binding_mismatch', detail: 'target' });
  });

  it('an audit event with what stands beside it; headers as lines or as an object', async () => {
    const signed = stage.sign(everything);
    const capture = captureOf(signed);
    const { run, report } = await stage.report(capture);
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    expect(report).toMatchObject({
      at: '2026-11-21T04:00:00Z',
      at_source: 'event',
      decision: { outcome: 'allowed' },
      recorded: { comparison: 'agrees', same_bundle: true, same_transcript: true },
      freshness: { age_seconds: 2, limit_seconds: 300 },
    });
    expect(report.steps.map(({ verdict }) => verdict)).toEqual([
      ...Array(5).fill('passed'),
      'not_checked',
      'would_pass',
    ]);
    const headers = Object.fromEntries(
      signed.wire.headers.map(({ name, value }) => [name.toUpperCase(), [value]]),
    );
    expect((await stage.explain({ ...capture, headers })).exitCode).toBe(0);
  });

  it('a body that was not captured is not an empty one', async () => {
    const { body_base64: _, ...capture } = captureOf(stage.sign(everything)) as { body_base64?: string };
    const { report } = await stage.report(capture);
    expect(report.decision).toMatchObject({ reason: 'request_binding_mismatch', detail: 'body_unavailable' });
    expect(report.transcript.find(({ equal }) => !equal)).toMatchObject({
      line: 'content-sha256',
      rebuilt: null,
      why: 'body_unavailable',
    });
  });

  it('must be a file that is there', async () => {
    const run = await stage.run('--request', stage.path('nowhere.json'), '--bundle', stage.bundle);
    expectCliError(run, 'file_not_found', 2);
  });
});

type Wire = Parameters<typeof rawCheckRequest>[0];

describe('what was recorded', () => {
  it('a replay is beyond what is explained', async () => {
    const signed = stage.sign(read);
    const { run, report } = await stage.report(captureOf(signed, eventOf(signed, 2)));
    expect(run.exitCode).toBe(0);
    expect(report.recorded).toMatchObject({ comparison: 'beyond', reason: 'jti_replay' });
  });

  it('reports another outcome and another proof', async () => {
    const signed = stage.sign(read);
    const other = stage.sign({ ...read, caller: 'reporting' });
    const { report } = await stage.report(
      captureOf(signed, { ...eventOf(other), outcome: 'denied', reason: 'jti_replay' }),
    );
    expect(report.recorded).toMatchObject({ comparison: 'beyond', same_transcript: false });
    const denied = {
      ...eventOf(signed),
      outcome: 'denied',
      reason: 'stale_bundle_fail_closed',
      detail: 'stale',
    };
    expect((await stage.report(captureOf(signed, denied))).report.recorded).toMatchObject({
      comparison: 'differs',
    });
  });
});

describe('clocks', () => {
  it('measures a caller ahead, and says so in words', async () => {
    const signed = stage.sign({ ...read, nowSeconds: NOW_SECONDS + 12 });
    const capture = captureOf(signed);
    const { report } = await stage.report(capture);
    expect(report.decision).toMatchObject({ detail: 'passport_not_yet_valid' });
    expect(report.clock?.proof).toMatchObject({ ahead_seconds: 12, late_seconds: 0 });
    expect(report.when_made?.decision).toMatchObject({ outcome: 'allowed' });
    const { stdout } = await stage.explain(capture);
    expect(stdout).toContain(
      "issued 12 s in the future: the caller's clock is about 12 s ahead; the site allows 5 s",
    );
  });

  it('--at wins over the event, and is said to', async () => {
    const { report } = await stage.report(captureOf(stage.sign(read)), '--at', '2026-11-21T04:02:00Z');
    expect(report).toMatchObject({ at: '2026-11-21T04:02:00Z', at_source: 'flag' });
    expect(report.decision).toMatchObject({ reason: 'invalid_request_proof', detail: 'proof_expired' });
    expect(report.clock?.proof).toMatchObject({ late_seconds: 60 });
  });

  it('keys that have lapsed since then are still those of then', async () => {
    expect(Date.now() / 1000).toBeGreaterThan(NOW_SECONDS + 3700);
    const { report } = await stage.report(captureOf(stage.sign(read)));
    expect(report.caller?.key).toBe('derived_key');
  });
});

describe('the bundle', () => {
  it('by a state directory, with the deltas in it, and nothing in there changes', async () => {
    const state = await stateDirectoryWithDelta();
    const before = await contentOf(state);
    const args = ['--state-dir', state, '--bundle-key', stage.path('key.jwk.json')];
    const { run, report } = await stage.report(captureOf(stage.sign(read)), ...args);
    expect(run).toMatchObject({ exitCode: 1, stderr: '' });
    expect(report).toMatchObject({
      bundle: { revision: 8, warnings: [] },
      decision: { detail: 'key_unknown' },
    });
    expect(await contentOf(state)).toEqual(before);
  });

  it('is trusted by its keys alone, unless somebody says otherwise', async () => {
    const capture = captureOf(stage.sign(read));
    expectCliError(await stage.explain(capture, '--bundle', stage.bundle), 'bundle_key_missing', 2);
    const loose = await stage.explain(capture, '--bundle', stage.bundle, '--unverified-bundle');
    expect(loose).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('signatures were not checked'),
    });
    expect(loose.stdout).toContain('SIGNATURES WERE NOT CHECKED');
    await writeFile(stage.path('other.jwk.json'), JSON.stringify(newSigningKey().publicKey.jwk));
    const other = ['--bundle', stage.bundle, '--bundle-key', stage.path('other.jwk.json')];
    expectCliError(await stage.explain(capture, ...other), 'signatures_insufficient', 2);
    const site = [
      '--bundle',
      stage.bundle,
      '--bundle-key',
      stage.path('key.jwk.json'),
      '--auth-site',
      'other',
    ];
    expectCliError(await stage.explain(capture, ...site), 'auth_site_mismatch', 2);
  });

  it('must be there', async () => {
    const capture = captureOf(stage.sign(read));
    const empty = stage.path('empty');
    await mkdir(empty);
    const key = ['--bundle-key', stage.path('key.jwk.json')];
    expectCliError(await stage.explain(capture, '--state-dir', empty, ...key), 'bundle_missing', 2);
    expectCliError(await stage.explain(capture, '--bundle', empty, ...key), 'file_missing', 2);
    const file = stage.path('capture.json');
    await writeFile(file, JSON.stringify(capture));
    expectCliError(await stage.run('--request', file, ...key), 'bundle_source_missing', 2);
  });
});

/** A state directory as a verifier that follows Control leaves it: the bundle of the fixture and a delta that removes a key. */
async function stateDirectoryWithDelta(): Promise<string> {
  const [state, source] = [stage.path('state'), stage.path('source')];
  await mkdir(state);
  await mkdir(source);
  const position = await putBundle(source, siteContent(keys), bundleKey);
  const { document } = signDelta(deltaAfter(position, { keys_removed: ['dk_billing'] }), [bundleKey]);
  await writeFile(join(source, 'delta-8.jws'), document);
  const persisted = new PersistedBundle(state);
  const signers = { keys: [bundleKey.publicKey], threshold: 1 };
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory: source,
    persisted,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark: new MemoryMark(),
    nowSeconds: () => NOW_SECONDS,
  });
  await loader.start();
  expect(loader.position?.revision).toBe(8);
  loader.close();
  await persisted.close();
  return state;
}

async function contentOf(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const described = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    return entry.isFile()
      ? `${path} ${createHash('sha256')
          .update(await readFile(path))
          .digest('hex')}`
      : path;
  });
  return (await Promise.all(described)).sort();
}

describe('what is no capture', () => {
  const signed = () => stage.sign(read);
  const check = () => JSON.parse(JSON.stringify(protobufJson(rawCheckRequest(signed().wire), 'camel')));

  it.each<readonly [name: string, code: string, place: string, capture: () => unknown]>([
    ['no JSON', 'request_not_json', '', () => '{"method": '],
    ['a member twice', 'request_not_json', 'method', () => '{"method":"GET","method":"PUT"}'],
    ['a list', 'request_invalid', '/: ', () => []],
    ['an unknown member', 'request_invalid', '/member 7', () => ({ ...captureOf(signed()), verb: 'GET' })],
    ['no scheme', 'request_invalid', '/scheme', () => ({ ...captureOf(signed()), scheme: null })],
    ['a method that is no text', 'request_invalid', '/method', () => ({ ...captureOf(signed()), method: 7 })],
    [
      'a header line without a colon',
      'request_invalid',
      '/headers/0',
      () => ({ ...captureOf(signed()), headers: ['x'] }),
    ],
    [
      'a header that is a number',
      'request_invalid',
      '/headers/member 1',
      () => ({ ...captureOf(signed()), headers: { x: 1 } }),
    ],
    [
      'two bodies',
      'request_invalid',
      '/body_base64',
      () => ({ ...captureOf(signed()), body: '', body_base64: '' }),
    ],
    [
      'another event',
      'request_invalid',
      '/event/event',
      () => captureOf(signed(), { ...eventOf(signed()), event: 'x' }),
    ],
    [
      'an event without a time',
      'request_invalid',
      '/event/time',
      () => captureOf(signed(), { ...eventOf(signed()), time: 'now' }),
    ],
    [
      'a CheckRequest with a member of its own',
      'request_invalid',
      '/attributes/request/http/member 6',
      () => {
        const value = check();
        value.attributes.request.http.verb = 'GET';
        return value;
      },
    ],
    [
      'both spellings',
      'request_invalid',
      '/attributes/request/http/header_map',
      () => {
        const value = check();
        value.attributes.request.http.header_map = { headers: [] };
        return value;
      },
    ],
    [
      'bytes that are no base64',
      'request_invalid',
      '/attributes/request/http/headerMap/headers/0/rawValue',
      () => {
        const value = check();
        value.attributes.request.http.headerMap.headers[0].rawValue = '§§§';
        return value;
      },
    ],
  ])('%s: %s', async (_, code, place, capture) => {
    const run = await stage.explain(capture());
    expectCliError(run, code, 2);
    expect(run.stderr).toContain(place);
  });

  it('a moment that is none', async () => {
    expectCliError(await stage.explain(captureOf(signed()), '--at', 'yesterday'), 'bad_time', 2);
  });
});
