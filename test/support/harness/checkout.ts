/** Finds the checkout from the sources under Jest, or from their compiled copy below `.build/`. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @returns the absolute path of a file of the checkout */
export function checkoutPath(...parts: readonly string[]): string {
  return join(checkoutRoot(), ...parts);
}

function checkoutRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('no package.json above the harness');
    folder = parent;
  }
  return folder;
}
