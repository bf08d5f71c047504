/** What is decided from is on the disk before: kill -9 does not show that, for the kernel remembers what was written. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { typescriptArguments } from '../../support/harness/run-typescript.ts';
import type { StateWriterSettings } from '../../support/harness/state-writer.ts';
import { traceNode, whyNoTrace } from './durable-writes.ts';

const missing = whyNoTrace();
if (missing !== undefined) process.stdout.write(`what is synced is not tested: ${missing}\n`);

(missing === undefined ? it : it.skip)(
  'a bundle and the deltas after it are synced, with their names, before they are used',
  async () => {
    const folder = await newDirectory();
    const [stateDirectory, bundleDirectory] = [join(folder, 'state'), join(folder, 'bundle')];
    await mkdir(stateDirectory);
    await mkdir(bundleDirectory);
    const settings: StateWriterSettings = { stateDirectory, bundleDirectory, deltas: 2 };
    const env = { PROOFGATE_TEST_SETTINGS: JSON.stringify(settings) };
    const args = typescriptArguments('./state-writer.ts');
    const trace = traceNode(args, env, stateDirectory, join(folder, 'trace'));
    expect(trace.said).toEqual(
      ['used 1\\n', 'used 2\\n', 'used 3\\n'].map((text) => ({ text, unsynced: [] })),
    );
    expect(trace.renamedUnsynced).toEqual([]);
    // The base, its log and its folders, the link's folder, the mark and its folder; then a log and a mark for each delta.
    expect(trace.syncs).toBeGreaterThan(10);
  },
  60_000,
);
