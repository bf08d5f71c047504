/**
 * Tests the files of `--capture-denied`: `proofgate explain` says of them what it says of the whole request, and nothing in
 * them can be spent.
 */
import { createPublicKey, verify } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { CaptureDirectory } from '../../../src/verifier/capture/capture-directory.ts';
import type { DeniedRequest } from '../../../src/verifier/capture/capture-document.ts';
import { DeniedCaptures } from '../../../src/verifier/capture/denied-captures.ts';
import { putBundle } from '../../support/bundle/bundle-directory.ts';
import type { Fault } from '../../support/cases/fault.ts';
import { applyToContent, storeWith } from '../../support/cases/faulty-site.ts';
import { FAULTS } from '../../support/cases/one-fault.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import {
  factsOfWire,
  type RequestEdits,
  type RequestPlan,
  type SignedRequest,
} from '../../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, routeContentOf, siteContent } from '../../support/fixtures/snapshot.ts';
import {
  checkNow,
  createTestVerifier,
  REALTIME_STALENESS_SECONDS,
} from '../../support/fixtures/test-verifier.ts';
import { signHttp } from '../../support/protocol/http-signer.ts';
import { bundleKey, captureOf, ExplainStage, keys, type Report, withLines } from './explain-fixture.ts';

const sound = await compileSite(siteContent(keys));
const read = { caller: 'billing', route: 'orders-read' } as const;
const SECRETS = ['cookie-monster', 'bearer-of-news', 'key-of-the-api', 'query-token', 'body-of-evidence'];

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

interface Captured {
  readonly file: string;
  readonly event: object;
}

/** Captures the denial of a verifier into a directory of its own. */
async function capture(
  signed: Pick<SignedRequest, 'facts'>,
  { keepsCredentials = false, fault, snapshot = sound }: CaptureInputs = {},
): Promise<Captured> {
  const directory = stage.path(`captures-${++directories}`);
  await mkdir(directory);
  const failures: unknown[] = [];
  const captures = new DeniedCaptures(
    new CaptureDirectory(directory),
    { realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS, keepsCredentials },
    { count: () => undefined, attempted: (code) => code !== undefined && failures.push(code) },
  );
  const { events, verifier } = createTestVerifier({
    snapshot: fault?.noBundle === true ? undefined : snapshot,
    store: storeWith(fault === undefined ? [] : [fault]),
    onDenied: (denied: DeniedRequest) => captures.add(denied),
  });
  expect(checkNow(verifier, signed.facts).kind).toBe('denied');
  await captures.close();
  expect(failures).toEqual([]);
  const [name = '', ...others] = await readdir(directory);
  expect(others).toEqual([]);
  const event = JSON.parse(JSON.stringify(events.at(-1)));
  expect(name).toBe(`${event.decision_id}.json`);
  return { file: `${directory}/${name}`, event };
}

interface CaptureInputs {
  readonly keepsCredentials?: boolean;
  readonly fault?: Fault;
  readonly snapshot?: Snapshot;
}
let directories = 0;

async function explainFile(file: string, ...args: readonly string[]) {
  const run = await stage.run('--request', file, '--output', 'json', ...args);
  const report: Report = JSON.parse(run.stdout || '{}');
  return { run, report };
}

function bundleArgs(bundle = stage.bundle): readonly string[] {
  return ['--bundle', bundle, '--bundle-key', stage.path('key.jwk.json')];
}

/** The request of a fault, its snapshot, and a directory with the same bundle. */
async function siteWith(fault: Fault) {
  const content = applyToContent(siteContent(keys), [fault]);
  const bundle = stage.path(`bundle-${++directories}`);
  await mkdir(bundle);
  await putBundle(bundle, content, bundleKey);
  const plan: RequestPlan = { caller: fault.only ?? 'billing', route: 'everything' };
  return { bundle, snapshot: await compileSite(content), signed: stage.sign(plan, fault.request ?? {}) };
}

/** What both must agree on. */
function essence({ clock, decision, hint, recorded, request, rules, steps, transcript }: Report) {
  return { clock, decision, hint, recorded, request, rules, steps, transcript };
}

describe('a captured denial says the same as the whole request', () => {
  it.each(FAULTS.filter(({ noBundle }) => noBundle !== true))('$outcome', async (fault) => {
    const { bundle, signed, snapshot } = await siteWith(fault);
    const { event, file } = await capture(signed, { fault, snapshot });
    const denial = await explainFile(file);
    const whole = await stage.report(captureOf(signed, event), ...bundleArgs(bundle));
    expect(denial.run).toMatchObject({ exitCode: whole.run.exitCode, stderr: '' });
    expect(essence(denial.report)).toEqual(essence(whole.report));
  });

  it('without a bundle', async () => {
    const fault: Fault = { step: 1, outcome: 'bundle_policy_missing 503', noBundle: true };
    const { report, run } = await explainFile((await capture(stage.sign(read), { fault })).file);
    expect(run.exitCode).toBe(1);
    expect(report).toMatchObject({ decision: { reason: 'bundle_policy_missing' }, bundle: null });
  });

  it('as text, with a note where settings have no effect', async () => {
    const { file } = await capture(stage.sign(read, toOther()));
    const plain = await stage.run('--request', file);
    expect(plain).toMatchObject({ exitCode: 1, stderr: '' });
    expect(plain.stdout).toMatch(/^DENIED {2}request_binding_mismatch \(target\), status 403\n/);
    expect(plain.stdout).toContain('they differ from character 13 on, in path segment 3\n');
    const noted = await stage.run('--request', file, '--show-values', ...bundleArgs());
    expect(noted).toMatchObject({ exitCode: 1, stdout: plain.stdout });
    expect(noted.stderr).toMatch(/the explanation that the verifier wrote/);
  });

  it('with credentials it is a whole request', async () => {
    const signed = stage.sign({ caller: 'broker', route: 'everything' }, withSecrets());
    const { event, file } = await capture(signed, { keepsCredentials: true });
    const again = await explainFile(file, ...bundleArgs());
    const whole = await stage.report(captureOf(signed, event));
    expect(essence(again.report)).toEqual(essence(whole.report));
    const then = await explainFile(file);
    expect(essence(then.report)).toEqual(essence(again.report));
  });

  it.each([
    ['accepts HTTP message signatures', { removesProofs: true }, 'proof_signature'],
    ['accepts none', {}, 'proof_missing'],
  ] as const)('with credentials it says whether the point %s', async (_, point, detail) => {
    const content = siteContent(keys);
    routeContentOf(content, 'orders-read').accepted_proofs = ['http-message-signatures'];
    const bundle = stage.path(`bundle-${++directories}`);
    await mkdir(bundle);
    await putBundle(bundle, content, bundleKey);
    const options = { key: keys.billing, keyId: KEY_ID.billing, authSite: AUTH_SITE };
    const headers = await signHttp(
      { method: 'GET', url: `${ORIGIN}/v1/orders/17`, headers: {} },
      { ...options, createdSeconds: NOW_SECONDS },
    );
    stage.keepSecret(headers.signature ?? '');
    const [scheme = '', authority = ''] = ORIGIN.split('://');
    const request = { method: 'GET', scheme, authority, target: '/v1/orders/18', headers: [] };
    const wire = withLines({ ...request, body: { kind: 'none' } }, ...Object.entries(headers));
    const facts = { ...factsOfWire(wire), ...point };
    const snapshot = await compileSite(content);
    const { file } = await capture({ facts }, { keepsCredentials: true, snapshot });
    const { report } = await explainFile(file, ...bundleArgs(bundle));
    expect(report.decision).toMatchObject({ reason: 'invalid_request_proof', detail });
  });

  it.each([
    ['without an explanation', { explanation: 7 }],
    ['with half of one', { explanation: {} }],
    ['with one of no decision', { explanation: { decision: { outcome: 'observed' } } }],
    ['with a text that is none', { text: [7] }],
    ['with a member of its own', { other: 1 }],
  ])('%s: request_invalid', async (_, change) => {
    const { file } = await capture(stage.sign(read, toOther()));
    await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), ...change }));
    expectCliError(await stage.run('--request', file), 'request_invalid', 2);
  });
});

function toOther(): RequestEdits {
  return { received: (wire) => ({ ...wire, target: wire.target.replace('/17', '/18') }) };
}

/** A request that only its target denies, so that its credentials are valid. */
function withSecrets(): RequestEdits {
  return {
    received: (wire) => ({
      ...withLines(
        wire,
        ['cookie', 'session=cookie-monster'],
        ['x-forwarded-authorization', 'Bearer bearer-of-news'],
        ['x-api-key', 'key-of-the-api'],
      ),
      target: `${wire.target}&access_token=query-token`,
      body: { kind: 'exact', bytes: Buffer.from('body-of-evidence') },
    }),
  };
}

describe('nothing in a capture can be spent', () => {
  it('of requests with valid credentials and further secrets', async () => {
    const plans: readonly RequestPlan[] = [
      { caller: 'broker', route: 'everything' },
      { caller: 'brokerEc', route: 'everything' },
      { caller: 'billing', route: 'everything' },
      { caller: 'reporting', route: 'everything' },
    ];
    for (const plan of plans) {
      const signed = stage.sign(plan, withSecrets());
      const { file } = await capture(signed);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const text = await readFile(file, 'utf8');
      expect(spendable(text, signed)).toEqual([]);
      const { jti, jws } = signed;
      const [header = '', claims = ''] = jws.split('.');
      expect([...SECRETS, jti, header, claims].filter((secret) => text.includes(secret))).toEqual([]);
      expect(JSON.parse(text).header_lengths).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^authorization: \[\d+ characters\]$/),
          'cookie: [22 characters]',
          'x-api-key: [14 characters]',
        ]),
      );
    }
  });

  it('which the search would find: with credentials both signatures verify', async () => {
    const signed = stage.sign({ caller: 'brokerEc', route: 'everything' }, withSecrets());
    const { file } = await capture(signed, { keepsCredentials: true });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const text = await readFile(file, 'utf8');
    expect(new Set(spendable(text, signed))).toEqual(new Set(['passport', 'proof']));
    expect(SECRETS.slice(0, 4).filter((secret) => !text.includes(secret))).toEqual([]);
  });

  it('of every row of the decision table', async () => {
    for (const fault of FAULTS) {
      const { signed, snapshot } = await siteWith(fault);
      const { file } = await capture(signed, { fault, snapshot });
      expect({ fault: fault.outcome, found: spendable(await readFile(file, 'utf8'), signed) }).toEqual({
        fault: fault.outcome,
        found: [],
      });
    }
  });
});

const publicKeys = Object.values(keys).map(({ privateKey }) => createPublicKey(privateKey));

/** Every word of the text that verifies with a key of the site: as the signature of the proof, or of any JWS. */
function spendable(text: string, { transcriptText }: SignedRequest): readonly string[] {
  const words = [...new Set(text.match(/[A-Za-z0-9_.+/=-]{20,}/g))];
  const transcript = Buffer.from(transcriptText, 'latin1');
  return words.flatMap((word) => {
    const [header = '', payload = '', signature = ''] = word.split('.');
    const isPassport = verifies(Buffer.from(`${header}.${payload}`), Buffer.from(signature, 'base64url'));
    const decoded = (['base64url', 'hex'] as const).map((encoding) => Buffer.from(word, encoding));
    const isProof = decoded.some((bytes) => verifies(transcript, bytes));
    return [...(isPassport ? ['passport'] : []), ...(isProof ? ['proof'] : [])];
  });
}

function verifies(message: Buffer, signature: Buffer): boolean {
  if (signature.byteLength !== 64) return false;
  return publicKeys.some((key) =>
    key.asymmetricKeyType === 'ed25519'
      ? verify(null, message, key, signature)
      : verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature),
  );
}
