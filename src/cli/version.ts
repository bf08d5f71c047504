/** The version of the package that this code belongs to, from its package.json. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isJsonObject } from '../protocol/strict-json.ts';

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
  if (!isJsonObject(value) || value.name !== 'proofgate') return undefined;
  return typeof value.version === 'string' ? value.version : undefined;
}
