/** Tests of the image, with the reason in their name where they skip. */
import { spawnSync } from 'node:child_process';
import { describe, it } from '@jest/globals';
import { hasImageTools } from './built.ts';

/** What images are made of has to be there. */
export function describeImage(name: string, tests: () => void): void {
  if (hasImageTools()) describe(name, tests);
  // Not even looked at: they make folders, which only what is run removes.
  else it.skip(`${name} (skips: run make image-tools first)`, () => {});
}

/** Mounting, besides, takes rights that not every machine gives. */
export function describeContainer(name: string, tests: () => void): void {
  if (!hasImageTools() || canMount()) describeImage(name, tests);
  else it.skip(`${name} (skips: mounting is not permitted here, run it as root)`, () => {});
}

function canMount(): boolean {
  return spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;
}
