/**
 * Hooks of Node's module loader (node:module, "Customization hooks"): they load tests and the code under test with types
 * stripped, and give tests Jest's functions and fast-check from this folder.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

const OWN = {
  '@jest/globals': new URL('jest-globals.mjs', import.meta.url).href,
  'fast-check': new URL('fixed-fast-check.mjs', import.meta.url).href,
};
const ORIGINAL = { 'original-fast-check': 'fast-check' };
const SWC = {
  jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
  module: { type: 'es6' },
  sourceMaps: 'inline',
};

export async function resolve(specifier, context, next) {
  if (Object.hasOwn(OWN, specifier)) return { url: OWN[specifier], shortCircuit: true };
  return await next(ORIGINAL[specifier] ?? specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return await next(url, context);
  const filename = fileURLToPath(url);
  const { code } = await transform(await readFile(filename, 'utf8'), { ...SWC, filename });
  return { format: 'module', source: code, shortCircuit: true };
}
