/** Documents in the state directory: each offer is a start of a verifier that kept the whole chain. */
import { readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BundleLoader } from '../../../../../src/verifier/loading/bundle-loader.ts';
import { PersistedBundle } from '../../../../../src/verifier/loading/state/persisted-bundle.ts';
import { newDirectory } from '../../../../support/bundle/bundle-directory.ts';
import { type SignedChain, TARGETS, type Target } from '../signed-chain.ts';
import { loadedAfter } from './directory-station.ts';
import {
  isDocumentAsSigned,
  type LoaderOptions,
  loadedOf,
  newLoader,
  requestOutcome,
  type Station,
} from './station.ts';

const STEP_LOG = 'steps.jsonl';
const STEPS: readonly Target[] = ['delta-3.jws', 'link-4.jws'];

/** A start from a state directory, and its orderly end. */
export async function withStarted<T>(
  chain: SignedChain,
  options: LoaderOptions,
  use: (loader: BundleLoader) => Promise<T> | T,
): Promise<T> {
  const persisted = new PersistedBundle(options.stateDirectory);
  const loader = newLoader(chain, { ...options, persisted });
  try {
    await loader.start();
    return await use(loader);
  } finally {
    loader.close();
    await persisted.close();
  }
}

/** A state directory in which the whole chain was kept, its statement with it. */
export async function newStateDirectory(chain: SignedChain): Promise<string> {
  const stateDirectory = await newDirectory();
  const directory = await newDirectory();
  for (const name of TARGETS) await writeFile(join(directory, name), chain.documents[name]);
  await withStarted(chain, { stateDirectory }, async (loader) => {
    if (loader.snapshot !== undefined) throw new Error('there was something already');
  });
  await withStarted(chain, { stateDirectory, directory }, () => undefined);
  // Statements are kept when they come from Control.
  await withStarted(chain, { stateDirectory }, (loader) =>
    loader.offerStatement(chain.documents['freshness.jws']),
  );
  return stateDirectory;
}

/** The folder of the base that is kept. */
export async function baseOf(stateDirectory: string): Promise<string> {
  return join(stateDirectory, await readlink(join(stateDirectory, 'current')));
}

/** Puts bytes in the place of one document of those that are kept. */
export async function damage(stateDirectory: string, chain: SignedChain, target: Target, bytes: Buffer) {
  const base = await baseOf(stateDirectory);
  const isStep = STEPS.includes(target);
  await writeFile(join(base, isStep ? STEP_LOG : target), isStep ? logWith(chain, target, bytes) : bytes);
}

function logWith(chain: SignedChain, target: Target, bytes: Buffer): Buffer {
  return Buffer.concat(STEPS.map((name) => (name === target ? bytes : chain.documents[name])));
}

export async function openStateStation(chain: SignedChain, target: Target): Promise<Station> {
  const stateDirectory = await newStateDirectory(chain);
  const after = await loadedAfter(chain, 'freshness.jws');
  // Without its statement the chain is still good; without any other of its parts it is below the mark.
  const before = target === 'freshness.jws' ? await loadedAfter(chain, 'link-4.jws') : undefined;
  let last: BundleLoader | undefined;
  return {
    before,
    after,
    isAsSigned: (bytes) =>
      STEPS.includes(target) ? isLogAsSigned(chain, target, bytes) : isDocumentAsSigned(chain, target, bytes),
    async offer(bytes) {
      await damage(stateDirectory, chain, target, bytes);
      return withStarted(chain, { stateDirectory }, (loader) => {
        last = loader;
        return loadedOf(loader.snapshot);
      });
    },
    request: (nowSeconds) => requestOutcome(chain, last, nowSeconds),
    close: async () => undefined,
  };
}

/** Lines that end, first of all one for each step, each as it was signed; what follows them is refused without them. */
function isLogAsSigned(chain: SignedChain, target: Target, bytes: Buffer): boolean {
  const lines = logWith(chain, target, bytes).toString('latin1').split('\n').slice(0, -1);
  return (
    lines.length >= STEPS.length &&
    STEPS.every((name, at) => isDocumentAsSigned(chain, name, Buffer.from(lines[at] ?? '', 'latin1')))
  );
}
