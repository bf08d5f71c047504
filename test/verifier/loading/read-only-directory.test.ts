/** A directory that the verifier may only read, as bundles are mounted: loads and follows, and writes nothing into it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from '@jest/globals';
import { signDelta, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { FileMark } from '../../../src/verifier/loading/high-water-mark.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { freshnessDocument, newDirectory, until } from '../../bundle/bundle-directory.ts';
import { deltaAfter } from '../../bundle/deltas.ts';
import { AUTH_SITE, bundleContent, NOW_SECONDS, newTestKeys } from '../../fakes/bundle-content.ts';
import { mountReadOnlyView } from '../../fakes/read-only-view.ts';

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

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Whole whenever it is seen. */
async function put(file: string, bytes: Buffer): Promise<void> {
  await writeFile(join(directory, '.half'), bytes);
  await rename(join(directory, '.half'), join(directory, file));
}

async function start(path: string, persisted: PersistedBundle | undefined, stateDirectory: string) {
  const refused: string[] = [];
  const signers = { keys: [keys.bundle.publicKey], threshold: 1 };
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory: path,
    persisted,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark: new FileMark({ stateDirectory, authSite: AUTH_SITE }),
    nowSeconds: () => NOW_SECONDS,
    pollIntervalMs: 20,
    listener: {
      refused: ({ code }) => refused.push(code),
      freshnessRefused: ({ code }) => refused.push(code),
    },
  });
  closing.push(async () => {
    loader.close();
    await persisted?.close();
  });
  await loader.start();
  return { loader, refused };
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
  const persisted = keeps ? new PersistedBundle(stateDirectory) : undefined;
  const { loader, refused } = await start(path, persisted, stateDirectory);
  expect(loader.position).toEqual(whole.position);
  const delta = signDelta(deltaAfter(whole.position, {}), [keys.bundle]);
  await put('delta-2.jws', delta.document);
  await until(() => loader.position?.revision === 2);
  const asOfSeconds = NOW_SECONDS + 1;
  const statement = freshnessDocument({ authSite: AUTH_SITE, ...delta.position, asOfSeconds }, keys.bundle);
  await put('freshness.jws', statement);
  await until(() => loader.snapshot?.freshAsOfSeconds === asOfSeconds);
  const next = { ...bundleContent(keys), revision: 3, previous_head: delta.position.head };
  const replaced = signWholeBundle(next, [keys.bundle]);
  await put('bundle.jws', replaced.document);
  await until(() => loader.position?.head === replaced.position.head);
  expect(refused).toEqual([]);
  for (const name of await readdir(directory)) rmSync(join(directory, name));
});
