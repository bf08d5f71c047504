/** Tests a capture on a full disk. In a file of its own, because `make mutation` runs no test that mounts a file system. */
import { readdir } from 'node:fs/promises';
import { afterAll, expect, it } from '@jest/globals';
import { CaptureDirectory } from '../../../src/verifier/capture/capture-directory.ts';
import { DeniedCaptures } from '../../../src/verifier/capture/denied-captures.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../../support/fixtures/snapshot.ts';
import {
  checkNow,
  createTestVerifier,
  REALTIME_STALENESS_SECONDS,
} from '../../support/fixtures/test-verifier.ts';
import { mountSmallDisk } from '../../support/harness/small-disk.ts';

const disk = mountSmallDisk(64, 'captures on a full disk');
afterAll(() => disk?.remove());

(disk === undefined ? it.skip : it)('is counted, and leaves nothing behind', async () => {
  const path = disk?.path ?? '';
  disk?.fill();
  const before = await readdir(path);
  const outcomes: unknown[] = [];
  const captures = new DeniedCaptures(
    new CaptureDirectory(path),
    { realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS, keepsCredentials: false },
    { count: (outcome) => outcomes.push(outcome), attempted: (code) => outcomes.push(code) },
  );
  const { verifier } = createTestVerifier({ onDenied: (denied) => captures.add(denied) });
  const { facts } = signRequest(newSiteKeys(), { caller: 'billing', route: 'orders-read' });
  expect(checkNow(verifier, facts).kind).toBe('denied');
  await captures.close();
  expect(outcomes).toEqual(['failed', 'enospc']);
  expect(await readdir(path)).toEqual(before);
});
