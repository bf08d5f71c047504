/** The packages that are bundled into dist/console, which no node_modules has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { componentOf, FOLDER } from './npm-packages.mjs';

const LICENCES = 'dist/console/LICENSES.md';
/** A heading of it: `## react - 19.3.1 (MIT)`. */
const PACKAGE = /^## (\S+) - (\S+) \(/gm;

/**
 * @param built the directory that dist/ is in
 * @returns components; the root depends on each of them
 */
export function consoleComponents(lock, built = '.') {
  const text = readFileSync(join(built, LICENCES), 'utf8');
  return [...text.matchAll(PACKAGE)].map(([, name, version]) => {
    const locked = lock.packages[FOLDER + name];
    if (locked?.version !== version) throw new Error(`package-lock.json has no ${name} ${version}`);
    return {
      ...componentOf(name, locked),
      properties: [{ name: 'proofgate:bundled_in', value: 'dist/console' }],
    };
  });
}

/** Adds them to what `describePackages` returns, whose first dependencies are the root's. */
export function withConsole({ components, dependencies: [root, ...others] }, bundled) {
  const known = new Set(components.map((component) => component['bom-ref']));
  const added = bundled.filter((component) => !known.has(component['bom-ref']));
  const refs = added.map((component) => component['bom-ref']);
  return {
    components: [...components, ...added],
    dependencies: [
      { ref: root.ref, dependsOn: [...root.dependsOn, ...refs].sort() },
      ...others,
      ...refs.map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
}
