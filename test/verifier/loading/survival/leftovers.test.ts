/** What several writes at a time, and writes that were cut off, leave in the state directory. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { signWholeBundle } from '../../../../src/bundle/authoring/publishing-documents.ts';
import { MARK_FILE } from '../../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../../src/verifier/loading/state/persisted-bundle.ts';
import { newDirectory } from '../../../support/bundle/bundle-directory.ts';
import { newSignedChain } from './signed-chain.ts';
import { newStateDirectory, withStarted } from './stations/state-station.ts';
import { newLoader } from './stations/station.ts';

const chain = newSignedChain();

describe('the state directory', () => {
  it('keeps a base that is on its way when another becomes current', async () => {
    const stateDirectory = await newDirectory();
    const persisted = new PersistedBundle(stateDirectory);
    const loader = newLoader(chain, { stateDirectory, persisted });
    await loader.start();
    const [slow, quick] = [await persisted.newBase(), await persisted.newBase()];
    await writeFile(join(quick.path, 'bundle.jws'), chain.old.bundle);
    expect(await loader.replace(quick, [])).toBeUndefined();
    await persisted.discard(quick);
    const { document, position } = signWholeBundle({ ...chain.old.content, revision: 7 }, chain.bundleKeys);
    await writeFile(join(slow.path, 'bundle.jws'), document);
    expect(await loader.replace(slow, [])).toBeUndefined();
    await persisted.discard(slow);
    expect(loader.position).toEqual(position);
    expect(await readdir(join(stateDirectory, 'bases'))).toHaveLength(1);
    loader.close();
    await persisted.close();
  });

  it('loses at the next rise of the mark what a write of it left behind, and nothing else', async () => {
    const stateDirectory = await newStateDirectory(chain);
    const before = (await readdir(stateDirectory)).sort();
    await writeFile(join(stateDirectory, `.${MARK_FILE}.0123456789abcdef`), '{"for');
    await writeFile(join(stateDirectory, `.${MARK_FILE}.note`), 'of an operator');
    const bytes = chain.delta(chain.end, {});
    const step = { kind: 'delta', file: 'delta-5.jws', bytes } as const;
    const refused = await withStarted(chain, { stateDirectory }, (loader) => loader.advance([step]));
    expect(refused).toBeUndefined();
    expect((await readdir(stateDirectory)).sort()).toEqual([`.${MARK_FILE}.note`, ...before].sort());
  });
});
