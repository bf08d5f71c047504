/** The API references of the SDKs are what `make sdk-reference` writes, and describe every name. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { GO_ENV, MISSING_GO } from '../../support/caller/sdk-drivers.ts';
import { readText } from '../../support/docs/markdown.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';

const PAGES = ['sdk-node.md', 'sdk-python.md', 'sdk-go.md', 'sdk-java.md'];

(MISSING_GO === undefined ? describe : describe.skip)('the API references', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pg-sdk-reference-'));
    const script = checkoutPath('scripts', 'sdk', 'reference', 'main.mjs');
    execFileSync(process.execPath, [script, `--out=${folder}`], { env: GO_ENV });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(PAGES)('are up to date: %s', (page) => {
    expect(readText(`docs/reference/${page}`)).toBe(readFileSync(join(folder, page), 'utf8'));
  });

  it.each(PAGES)('describe every name: %s', (page) => {
    const [, ...names] = readFileSync(join(folder, page), 'utf8').split('\n## ');
    expect(names.length).toBeGreaterThan(5);
    // The name, its signature, and a sentence.
    const undescribed = names.filter((name) => !/^\w+\n\n`.*`\n\n[^-\n]/.test(name));
    expect(undescribed).toEqual([]);
  });
});

it('names what the packages export', () => {
  const headings = (page: string) =>
    [...readText(`docs/reference/${page}`).matchAll(/^## (\w+)$/gm)].map(([, name = '']) => name).sort();
  const listed = (text: string, list: RegExp, name: RegExp) =>
    (list.exec(text)?.[1] ?? '').match(name)?.sort();
  const python = readText('sdk/python/src/proofgate/__init__.py');
  expect(headings('sdk-python.md')).toEqual(listed(python, /__all__ = \[([^\]]*)\]/, /\w+/g));
  const java = readdirSync(checkoutPath('sdk/java/src/main/java/example/proofgate')).flatMap((file) =>
    [
      ...readText(`sdk/java/src/main/java/example/proofgate/${file}`).matchAll(
        /public .*(?:class|enum) (\w+)/g,
      ),
    ].map(([, name]) => name),
  );
  expect(headings('sdk-java.md')).toEqual(java.sort());
  const node = readText('src/caller/sdk/index.ts')
    .replace(/ from '.*/g, '')
    .replace(/\b(?:export|type)\b|\/\*.*/g, '');
  expect(headings('sdk-node.md')).toEqual(node.match(/\w+/g)?.sort());
});
