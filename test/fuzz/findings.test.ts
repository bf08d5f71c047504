/**
 * Runs inputs that once broke something, under `findings/<target>/`, and the seeds of each target: without instrumentation, at
 * every run.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { canaryTarget } from './canary.ts';
import { TARGET_NAMES, TARGETS } from './targets.ts';

function findingsOf(name: string): readonly Buffer[] {
  const directory = fileURLToPath(new URL(`./findings/${name}/`, import.meta.url));
  if (!existsSync(directory)) return [];
  return readdirSync(directory).map((file) => readFileSync(`${directory}${file}`));
}

/** What a target throws, by input; a promise of it where it needs turns of the event loop. */
async function faultOf(run: (input: Buffer) => void | Promise<void>, input: Buffer): Promise<string[]> {
  try {
    await run(input);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

describe.each(TARGET_NAMES)('%s', (name) => {
  it('holds on every input that is kept, and on its seeds', async () => {
    const target = await TARGETS[name]();
    expect(target.seeds.length).toBeGreaterThan(5);
    const faults: string[] = [];
    for (const input of [...target.seeds, ...findingsOf(name)])
      faults.push(...(await faultOf(target.run, input)));
    expect(faults).toEqual([]);
  });
});

it('sees what the canary throws', async () => {
  expect(await faultOf(canaryTarget.run, Buffer.from('passport|proof|11111111'))).toEqual([
    'the canary was found',
  ]);
});
