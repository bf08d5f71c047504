/** Documents in the local directory of `--bundle`. */
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newDirectory } from '../../../../support/bundle/bundle-directory.ts';
import { AS_OF_SECONDS, type SignedChain, TARGETS, type Target } from '../signed-chain.ts';
import { isDocumentAsSigned, loadedOf, newLoader, requestOutcome, type Station } from './station.ts';

export async function openDirectoryStation(chain: SignedChain, target: Target): Promise<Station> {
  const directory = await newDirectory();
  const put = newWriter(directory);
  const loader = newLoader(chain, { stateDirectory: await newDirectory(), directory });
  await put('bundle.jws', chain.old.bundle);
  await loader.start();
  for (const name of leadingTo(target)) {
    await put(name, chain.documents[name]);
    await loader.reload();
  }
  if (target === 'keys-0001.jsonl') await put('bundle.jws', chain.documents['bundle.jws']);
  // The shard that the bundle names is there before it.
  if (target === 'bundle.jws') await put('keys-0001.jsonl', chain.documents['keys-0001.jsonl']);
  if (target !== 'freshness.jws') {
    await put('freshness.jws', chain.statement(chain.before[target], AS_OF_SECONDS - 10));
    await loader.reload();
  }
  const before = loadedOf(loader.snapshot);
  return {
    before,
    after: await loadedAfter(chain, target),
    isAsSigned: (bytes) => isDocumentAsSigned(chain, target, bytes),
    async offer(bytes) {
      await put(target, bytes);
      await loader.reload();
      return loadedOf(loader.snapshot);
    },
    request: (nowSeconds) => requestOutcome(chain, loader, nowSeconds),
    close: async () => loader.close(),
  };
}

/** Documents that were taken before: the bundle and its shard are taken together. */
function leadingTo(target: Target): readonly Target[] {
  const before = TARGETS.slice(0, TARGETS.indexOf(target));
  return target === 'keys-0001.jsonl' ? [] : before;
}

/** Each file has a time of its own: a clock's tick may be longer than the time between two writes. */
export function newWriter(directory: string) {
  let seconds = 1_000_000_000;
  return async (name: string, bytes: Buffer) => {
    const path = join(directory, name);
    await writeFile(path, bytes);
    seconds += 1;
    await utimes(path, seconds, seconds);
  };
}

/** The state of a verifier that only received the valid documents. */
export async function loadedAfter(chain: SignedChain, target: Target) {
  const directory = await newDirectory();
  const put = newWriter(directory);
  const last = target === 'bundle.jws' ? 'keys-0001.jsonl' : target;
  for (const name of TARGETS.slice(0, TARGETS.indexOf(last) + 1)) await put(name, chain.documents[name]);
  const loader = newLoader(chain, { stateDirectory: await newDirectory(), directory });
  await loader.start();
  loader.close();
  return loadedOf(loader.snapshot);
}
