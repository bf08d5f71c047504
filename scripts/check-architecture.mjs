/**
 * Checks the imports of the programs against the floors in .dependency-cruiser.cjs, and that no folders import each other in a circle.
 * A checker that reads no file would report success (dependency-cruiser 17 does, when it cannot load the compiler). So
 * the check must have read every TypeScript file, and must first detect canaries: forbidden imports that exist only for
 * it.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { cruise } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { circlesOf, houseOf } from './house.mjs';

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

/** @returns whether an import by the file is an error in a room */
async function objects(room, imported) {
  const folder = mkdtempSync(`src/${room}/canary-`);
  try {
    writeFileSync(path.join(folder, 'canary.ts'), `import '../../${imported}';\n`);
    const { summary } = await check([folder]);
    return summary.violations.some(({ rule }) => rule.name === `room-${room}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const FORBIDDEN = [
  ['protocol', 'cli/main.ts'],
  ['broker', 'control/store/port.ts'],
  ['control', 'enforcement/answers/denial-problem.ts'],
];
for (const [room, imported] of FORBIDDEN) {
  if (!(await objects(room, imported))) fail(`the checker did not object to src/${imported} in src/${room}`);
}
const circle = ['a/b', 'a/c'].map((from, i, both) => ({ from, to: both[1 - i] }));
if (circlesOf(circle).length !== 1) fail('the checker does not find a circle of folders');
const folders = ['src', 'bench', 'demo'];
const files = folders.flatMap(typescriptFiles);
const { modules, summary } = await check(folders);
const seen = new Set(modules.map(({ source }) => source));
const unseen = files.filter((file) => !seen.has(file));
if (unseen.length > 0) fail(`the checker did not look at ${unseen.join(', ')}`);
for (const { from, rule, to } of summary.violations) fail(`${rule.name}: ${from} → ${to}`);
const { arrows, circles, rooms } = houseOf('src');
for (const folders of circles) fail(`these folders import each other in a circle: ${folders.join(', ')}`);
if (process.exitCode === undefined) {
  console.log(
    `architecture: ${files.length} modules in ${rooms.length} rooms, ${arrows.length} arrows, all down`,
  );
}
