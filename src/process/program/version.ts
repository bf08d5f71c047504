/** The version of the package that this code belongs to, from its package.json. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isJsonObject } from '../../protocol/strict-json.ts';

/** The program's package, and the middleware's, which contains the same code. */
const PACKAGES: readonly unknown[] = ['proofgate', '@proofgate/middleware'];

/** Such as `0.2.4`. @throws Error when no package.json of Proofgate lies above this file */
export function packageVersion(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const version = versionIn(join(folder, 'package.json'));
    if (version !== undefined) return version;
    const parent = dirname(folder);
    if (parent === folder) throw new Error('no package.json of proofgate above its code');
    folder = parent;
  }
}

function versionIn(file: string): string | undefined {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  const value: unknown = JSON.parse(content);
  if (!isJsonObject(value) || !PACKAGES.includes(value.name)) return undefined;
  return typeof value.version === 'string' ? value.version : undefined;
}
