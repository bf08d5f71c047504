/**
 * What was kept and is no longer sound is refused at the start, whichever part it is; then the copy in the local directory
 * or at Control takes its place, and the next start finds it again.
 */

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { newDirectory } from '../../../support/bundle/bundle-directory.ts';
import { newSignedChain, TARGETS, type Target } from './signed-chain.ts';
import { ControlScript } from './stations/control-script.ts';
import { startFollower } from './stations/control-station.ts';
import { loadedAfter } from './stations/directory-station.ts';
import { HostileControl } from './stations/hostile-control.ts';
import { baseOf, damage, newStateDirectory, withStarted } from './stations/state-station.ts';
import { loadedOf, requestOutcome } from './stations/station.ts';

const chain = newSignedChain();
/** Parts without which the chain does not reach the mark. */
const PARTS = TARGETS.filter((target) => target !== 'freshness.jws');

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const FAULTS: { readonly [name: string]: (stateDirectory: string, target: Target) => Promise<void> } = {
  'cut in half': (stateDirectory, target) => {
    const bytes = chain.documents[target];
    return damage(stateDirectory, chain, target, bytes.subarray(0, bytes.length / 2));
  },
  'with a bit flipped': (stateDirectory, target) => {
    const bytes = Buffer.from(chain.documents[target]);
    const at = Math.floor(bytes.length / 3);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return damage(stateDirectory, chain, target, bytes);
  },
  gone: async (stateDirectory, target) => {
    const name = target.startsWith('delta') || target.startsWith('link') ? 'steps.jsonl' : target;
    await rm(join(await baseOf(stateDirectory), name));
  },
};

/** Refused, and nothing of it at work. */
async function expectRefused(stateDirectory: string): Promise<void> {
  await withStarted(chain, { stateDirectory }, (loader) => {
    expect(loader.snapshot).toBeUndefined();
    expect(loader.status().problem).toBeDefined();
    expect(requestOutcome(chain, loader)).toBe('bundle_policy_missing 503');
  });
}

async function expectHealed(stateDirectory: string): Promise<void> {
  const end = await loadedAfter(chain, 'link-4.jws');
  await withStarted(chain, { stateDirectory }, (loader) => {
    expect(loadedOf(loader.snapshot)).toEqual(end);
    expect(loader.status().problem).toBeUndefined();
    expect(requestOutcome(chain, loader)).toBe('allowed');
  });
}

describe.each(PARTS)('a %s that was kept', (target) => {
  it.each(Object.keys(FAULTS))('and is %s is refused, and healed from the local directory', async (fault) => {
    const stateDirectory = await newStateDirectory(chain);
    await FAULTS[fault]?.(stateDirectory, target);
    await expectRefused(stateDirectory);
    const directory = await newDirectory();
    for (const name of PARTS) await writeFile(join(directory, name), chain.documents[name]);
    await withStarted(chain, { stateDirectory, directory }, (loader) => {
      expect(loader.position).toEqual(chain.end);
      expect(loader.status().problem).toBeUndefined();
    });
    await expectHealed(stateDirectory);
  });

  it.each(Object.keys(FAULTS))('and is %s is refused, and healed from Control', async (fault) => {
    const stateDirectory = await newStateDirectory(chain);
    await FAULTS[fault]?.(stateDirectory, target);
    await expectRefused(stateDirectory);
    const control = await HostileControl.start();
    closing.push(() => control.close());
    const { loader, stop } = await startFollower(chain, control.url, stateDirectory);
    closing.unshift(stop);
    await control.say(new ControlScript(chain, control).leadTo('link-4.jws', chain.end));
    expect(loader.position).toEqual(chain.end);
    expect(loader.status().problem).toBeUndefined();
    await stop();
    await expectHealed(stateDirectory);
  });
});
