/**
 * Checks the imports of the programs against the directions in .dependency-cruiser.cjs. A checker that looked at nothing would report
 * success (dependency-cruiser 17 does, when it cannot load the compiler), so two canaries come first: it must have seen every
 * TypeScript file, and it must reject a forbidden import made for it.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { cruise } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';

const rules = createRequire(import.meta.url)('../.dependency-cruiser.cjs');

async function check(folders) {
  const options = { ...rules.options, validate: true, ruleSet: { forbidden: rules.forbidden } };
  const { output } = await cruise(folders, options, {}, { tsConfig: extractTSConfig('tsconfig.json') });
  return output;
}

function typescriptFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => path.posix.join(folder, file.split(path.sep).join('/')));
}

function fail(message) {
  console.error(`architecture: ${message}`);
  process.exitCode = 1;
}

/** A file in src/protocol that imports the command line must be an error. */
async function canaryIsCaught() {
  const folder = mkdtempSync('src/protocol/canary-');
  try {
    writeFileSync(path.join(folder, 'canary.ts'), "import '../../cli/main.ts';\n");
    const { summary } = await check([folder]);
    return summary.violations.some(({ rule }) => rule.name === 'room-protocol');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (!(await canaryIsCaught())) fail('the checker did not object to a forbidden import: it sees nothing');
const folders = ['src', 'bench', 'demo'];
const files = folders.flatMap(typescriptFiles);
const { modules, summary } = await check(folders);
const seen = new Set(modules.map(({ source }) => source));
const unseen = files.filter((file) => !seen.has(file));
if (unseen.length > 0) fail(`the checker did not look at ${unseen.join(', ')}`);
for (const { from, rule, to } of summary.violations) fail(`${rule.name}: ${from} → ${to}`);
if (process.exitCode === undefined) console.log(`architecture: ${files.length} modules, no violations`);
