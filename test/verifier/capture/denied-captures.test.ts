/** Tests the directory of captured denials: its limits, sharing, failures, and that captures do not hold up decisions. */
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { requestHeadersOf } from '../../../src/process/http-proxy/raw-headers.ts';
import { CaptureDirectory } from '../../../src/verifier/capture/capture-directory.ts';
import type { CaptureOutcome } from '../../../src/verifier/capture/capture-metrics.ts';
import { DeniedCaptures } from '../../../src/verifier/capture/denied-captures.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import {
  checkNow,
  createTestVerifier,
  REALTIME_STALENESS_SECONDS,
} from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const snapshot = await compileSite(siteContent(keys));
const { facts } = signRequest(
  keys,
  { caller: 'billing', route: 'orders-read' },
  { received: (wire) => ({ ...wire, method: 'PUT' }) },
);

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-captures-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function openCaptures(directoryOf = new CaptureDirectory(directory), keepsCredentials = false) {
  const outcomes: CaptureOutcome[] = [];
  const codes: (string | undefined)[] = [];
  const options = { realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS, keepsCredentials };
  const observer = {
    count: (outcome: CaptureOutcome) => void outcomes.push(outcome),
    attempted: (code: string | undefined) => void codes.push(code),
  };
  const captures = new DeniedCaptures(directoryOf, options, observer);
  const { verifier } = createTestVerifier({ snapshot, onDenied: (denied) => captures.add(denied) });
  const countOf = (outcome: CaptureOutcome) => outcomes.filter((each) => each === outcome).length;
  return { captures, codes, countOf, deny: () => checkNow(verifier, facts) };
}

describe('the limits', () => {
  /** Files of earlier runs, of 1,000 bytes each; the last is the newest. */
  async function oldFiles(count: number): Promise<readonly string[]> {
    const names = Array.from({ length: count }, () => `${randomUUID()}.json`);
    for (const [index, name] of names.entries()) {
      await writeFile(join(directory, name), 'x'.repeat(1000));
      await utimes(join(directory, name), 1000 + index, 1000 + index);
    }
    return names;
  }

  it.each([
    ['files', { maxFiles: 4, maxBytes: 1_000_000 }],
    ['bytes', { maxFiles: 1000, maxBytes: 4500 }],
  ])('of %s remove the oldest, and no files of others', async (_, limits) => {
    const names = await oldFiles(9);
    await writeFile(join(directory, 'notes.json'), 'mine');
    const part = join(directory, `${randomUUID()}.json.part`);
    await writeFile(part, 'left by a process that was killed');
    await utimes(part, 999, 999);
    const id = randomUUID();
    await new CaptureDirectory(directory, limits).write(id, 'y'.repeat(900));
    const kept = await readdir(directory);
    expect(kept.sort()).toEqual([...names.slice(-3), 'notes.json', `${id}.json`].sort());
  });

  it('count another file of the directory only now and then', async () => {
    const limits = { maxFiles: 100, maxBytes: 1_000_000 };
    const [writer, other] = [
      new CaptureDirectory(directory, limits),
      new CaptureDirectory(directory, limits),
    ];
    await writer.write(randomUUID(), 'x');
    await oldFiles(120);
    await writer.write(randomUUID(), 'x');
    expect(await readdir(directory)).toHaveLength(122);
    await other.write(randomUUID(), 'x');
    expect(await readdir(directory)).toHaveLength(100);
  });

  it('hold for any number of writes of two writers', async () => {
    const limits = { maxFiles: 6, maxBytes: 1_000_000 };
    const two = [new CaptureDirectory(directory, limits), new CaptureDirectory(directory, limits)];
    for (let i = 0; i < 20; i++) await Promise.all(two.map((each) => each.write(randomUUID(), 'x')));
    // Each may have written one since the other counted.
    expect([6, 7]).toContain((await readdir(directory)).length);
  });

  it('let nothing be written where old files cannot be removed', async () => {
    await mkdir(join(directory, `${randomUUID()}.json`));
    const { captures, codes, countOf, deny } = openCaptures(
      new CaptureDirectory(directory, { maxFiles: 1, maxBytes: 1_000_000 }),
    );
    for (let i = 0; i < 2; i++) deny();
    await captures.close();
    expect([countOf('failed'), countOf('written'), codes.includes(undefined)]).toEqual([2, 0, false]);
    expect(await readdir(directory)).toHaveLength(1);
  });
});

describe('captures', () => {
  it('are written after the decision, by decision ID', async () => {
    const { captures, countOf, deny } = openCaptures();
    const { decisionId } = deny();
    expect(countOf('written')).toBe(0);
    await captures.close();
    expect(countOf('written')).toBe(1);
    expect((await stat(join(directory, `${decisionId}.json`))).mode & 0o777).toBe(0o600);
  });

  it('are dropped and counted when denials come faster than they are written', async () => {
    const { captures, countOf, deny } = openCaptures();
    for (let i = 0; i < 100; i++) expect(deny().kind).toBe('denied');
    await captures.close();
    expect(countOf('written')).toBe(32);
    expect(countOf('dropped')).toBe(68);
    expect(await readdir(directory)).toHaveLength(32);
  });

  it.each([
    ['header_lengths', false, '[5 characters]: [1 character]'],
    ['headers', true, 'a8999: x'],
  ])('hold all lines, also of thousands, as %s', async (member, keepsCredentials, last) => {
    const { captures } = openCaptures(undefined, keepsCredentials);
    const rawHeaders = Array.from({ length: 9000 }, (_, index) => [`a${index}`, 'x']).flat();
    const { verifier } = createTestVerifier({ snapshot, onDenied: (denied) => captures.add(denied) });
    checkNow(verifier, { ...facts, headers: requestHeadersOf(rawHeaders) });
    await captures.close();
    const [file = ''] = await readdir(directory);
    const { [member]: lines } = JSON.parse(await readFile(join(directory, file), 'utf8'));
    expect([lines.length, lines.at(-1)]).toEqual([9000, last]);
  });

  it('hold few bytes of bodies', async () => {
    const { captures, countOf } = openCaptures();
    const big = { ...facts, body: { kind: 'exact', bytes: Buffer.alloc(3 * 1024 * 1024) } } as const;
    const { verifier } = createTestVerifier({ snapshot, onDenied: (denied) => captures.add(denied) });
    for (let i = 0; i < 5; i++) checkNow(verifier, big);
    await captures.close();
    expect([countOf('written'), countOf('dropped')]).toEqual([2, 3]);
  });

  it('hold what a proxy sent, for explain to read, only with its credentials', async () => {
    const captured = async (keepsCredentials: boolean, body: typeof facts.body) => {
      const { captures } = openCaptures(undefined, keepsCredentials);
      const { verifier } = createTestVerifier({ snapshot, onDenied: (denied) => captures.add(denied) });
      const { decisionId } = checkNow(verifier, { ...facts, body });
      await captures.close();
      return JSON.parse(await readFile(join(directory, `${decisionId}.json`), 'utf8'));
    };
    const { authority, method, scheme, target: path } = facts;
    const head = { method, scheme, authority, path };
    const exact = (bytes: Uint8Array) => ({ kind: 'exact', bytes }) as const;
    expect(await captured(true, { kind: 'none' })).toMatchObject({ ...head, body: '' });
    expect(await captured(true, { kind: 'unknown' })).toMatchObject({ ...head, body_unknown: true });
    expect(await captured(true, exact(Buffer.from('hi')))).toMatchObject({ ...head, body_base64: 'aGk=' });
    const large = await captured(true, exact(Buffer.alloc(1024 * 1024 + 1)));
    expect(large).toMatchObject({ ...head, body_unknown: true });
    expect(Object.keys(await captured(false, exact(Buffer.from('hi')))).sort()).toEqual([
      'event',
      'explanation',
      'header_lengths',
      'text',
    ]);
  });

  it('that cannot be written change no decision, and are counted', async () => {
    const { captures, codes, countOf, deny } = openCaptures();
    await rm(directory, { recursive: true });
    expect(deny()).toMatchObject({ kind: 'denied', denial: { reason: 'bundle_route_missing' } });
    await captures.close();
    await mkdir(directory);
    deny();
    await captures.close();
    expect(codes).toEqual(['enoent', undefined]);
    expect([countOf('failed'), countOf('written')]).toEqual([1, 1]);
  });
});
