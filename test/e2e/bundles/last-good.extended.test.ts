/**
 * Tests the real verifier over a directory that gets no valid document any more: the loaded bundle serves while statements keep
 * it fresh, and not after it is stale.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { signFreshness, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { AUTH_SITE, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { type CheckClient, openCheckClient, outcomeOfResponse } from '../../support/harness/check-client.ts';
import { waitFor } from '../../support/wait.ts';
import { contentOf, newCallerKeys, nowSeconds } from './generations.ts';
import { RequestSigner } from './requests.ts';
import { type RunningVerifier, startVerifier } from './verifier-process.ts';

const MAX_STALENESS_SECONDS = 10;
const STALE = 'stale_bundle_fail_closed/stale 503';

const keys = newCallerKeys();
const signer = new RequestSigner(keys);
const content = contentOf(
  keys,
  { generation: 5, turnKey: 'odd' },
  { maxStalenessSeconds: MAX_STALENESS_SECONDS, lifetimeSeconds: 3600 },
);

let folder: string;
let position: ChainPosition;
let verifier: RunningVerifier;
let client: CheckClient;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pg-last-good-'));
  await mkdir(join(folder, 'bundle'));
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(keys.bundle.publicKey.jwk));
  const first = whole({ revision: 5 });
  position = first.position;
  await put('bundle.jws', first.document);
  await freshen(nowSeconds());
  const args = [
    ...['--auth-site', AUTH_SITE, '--bundle', join(folder, 'bundle'), '--state-dir', join(folder, 'state')],
    ...['--bundle-key', join(folder, 'key.jwk.json'), '--audit-file', join(folder, 'audit.jsonl')],
  ];
  verifier = await startVerifier({ args, replay: 'memory' });
  client = openCheckClient(verifier.address);
});
afterAll(async () => {
  client?.close();
  await verifier?.child.stop();
  await rm(folder, { recursive: true, force: true });
});

const put = (name: string, bytes: Buffer) => writeFile(join(folder, 'bundle', name), bytes);

function whole(more: Partial<BundleContent>, signers: readonly SigningKey[] = [keys.bundle]) {
  return signWholeBundle({ ...content, revision: 6, ...more }, signers);
}

function freshen(asOfSeconds: number): Promise<void> {
  const statement = { auth_site: AUTH_SITE, ...position, as_of: formatTime(asOfSeconds) };
  return put('freshness.jws', signFreshness(statement, [keys.bundle]));
}

const ALLOWED = 'allowed by 5';

/** The outcome of a request, with the revision where it is allowed. */
async function outcome(): Promise<string> {
  const response = await client.checkBytes(signer.request('paired'));
  const named = response.ok_response?.headers.find(
    ({ header }) => header.key === 'x-proofgate-bundle-revision',
  );
  return named === undefined ? outcomeOfResponse(response) : `allowed by ${named.header.value}`;
}

/** With a current statement, the first revision allows a request. */
async function serves(): Promise<void> {
  await freshen(nowSeconds());
  await waitFor('a request to be allowed', async () => {
    const found = await outcome();
    if (found !== ALLOWED && found !== STALE) throw new Error(found);
    return found === ALLOWED ? true : undefined;
  });
}

/** How often the verifier has refused a bundle for this. */
async function refusals(code: string): Promise<number> {
  const line = new RegExp(`^proofgate_bundle_[a-z_]*\\{[^}]*"${code}"[^}]*\\} (\\d+)$`, 'm');
  return Number(line.exec(await verifier.metrics())?.[1] ?? 0);
}

describe('a verifier to which nothing good comes', () => {
  const good = whole({}).document;
  it.each([
    ['cut off', 'document_malformed', good.subarray(0, good.length / 2)],
    ['damaged', 'signature_invalid', Buffer.from(good.toString().replace(/("payload":"e.{40})./, '$1_'))],
    ['signed by a stranger', 'signatures_insufficient', whole({}, [newSigningKey()]).document],
    ['of a lower revision', 'revision_lower', whole({ revision: 4 }).document],
    [
      'of the same revision with another head',
      'revision_conflict',
      whole({ revision: 5, skew_seconds: 2 }).document,
    ],
    [
      'expired',
      'expired',
      whole({ issued_at: '2026-11-01T00:00:00Z', expires_at: '2026-11-02T00:00:00Z' }).document,
    ],
  ])('refuses a bundle that is %s, and serves on', async (_name, code, bytes) => {
    await put('bundle.jws', bytes);
    await waitFor(`a refusal: ${code}`, async () => ((await refusals(code)) > 0 ? true : undefined));
    await serves();
  });

  it('serves until its freshness ends, whatever older statement comes again', async () => {
    await serves();
    const isStale = async () => {
      // Replayed again and again.
      await freshen(nowSeconds() - MAX_STALENESS_SECONDS);
      const found = await outcome();
      if (found !== ALLOWED && found !== STALE) throw new Error(found);
      return found === STALE ? true : undefined;
    };
    await waitFor('the bundle to be stale', isStale);
    await serves();
  });
});
