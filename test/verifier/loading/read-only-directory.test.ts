/** A directory that the verifier may only read, as bundles are mounted: loads and follows, and writes nothing into it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { signDelta, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { freshnessDocument, newDirectory } from '../../support/bundle/bundle-directory.ts';
import { deltaAfter } from '../../support/bundle/deltas.ts';
import { AUTH_SITE, bundleContent, NOW_SECONDS, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import { mountReadOnlyView } from '../../support/harness/read-only-view.ts';
import { waitUntil } from '../../support/wait.ts';
import { newTestLoader } from './loader-fixture.ts';

const keys = newTestKeys();
const directory = mkdtempSync(join(tmpdir(), 'proofgate-written-'));
const view = mountReadOnlyView(directory);
if (view === undefined) {
  process.stdout.write('a directory that may only be read is not tested: nothing may be mounted here\n');
}
afterAll(() => {
  view?.remove();
  rmSync(directory, { recursive: true, force: true });
});

/** Whole whenever it is seen. */
async function put(file: string, bytes: Buffer): Promise<void> {
  await writeFile(join(directory, '.half'), bytes);
  await rename(join(directory, '.half'), join(directory, file));
}

(view === undefined ? it.skip : it).each([
  ['alone', false],
  ['beside a state directory that keeps what is loaded', true],
])('is loaded and followed, %s', async (_what, keeps) => {
  const path = view?.path ?? '';
  await expect(writeFile(join(path, 'x'), '')).rejects.toMatchObject({ code: 'EROFS' });
  const stateDirectory = await newDirectory();
  const whole = signWholeBundle(bundleContent(keys), [keys.bundle]);
  await put('bundle.jws', whole.document);
  const { loader, refused } = newTestLoader({
    signer: keys.bundle,
    directory: path,
    stateDirectory,
    persists: keeps,
    pollIntervalMs: 20,
  });
  await loader.start();
  expect(loader.position).toEqual(whole.position);
  const delta = signDelta(deltaAfter(whole.position, {}), [keys.bundle]);
  await put('delta-2.jws', delta.document);
  await waitUntil(() => loader.position?.revision === 2);
  const asOfSeconds = NOW_SECONDS + 1;
  const statement = freshnessDocument({ authSite: AUTH_SITE, ...delta.position, asOfSeconds }, keys.bundle);
  await put('freshness.jws', statement);
  await waitUntil(() => loader.snapshot?.freshAsOfSeconds === asOfSeconds);
  const next = { ...bundleContent(keys), revision: 3, previous_head: delta.position.head };
  const replaced = signWholeBundle(next, [keys.bundle]);
  await put('bundle.jws', replaced.document);
  await waitUntil(() => loader.position?.head === replaced.position.head);
  expect(refused).toEqual([]);
  for (const name of await readdir(directory)) rmSync(join(directory, name));
});
