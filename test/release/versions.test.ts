/** Checks that all versions in the checkout equal the one in package.json. */
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { packageVersion } from '../../src/process/program/version.ts';
import { readText } from '../support/docs/markdown.ts';

const { dependencies, devDependencies, engines, license, name, version, workspaces } = JSON.parse(
  readText('package.json'),
);
const lock = JSON.parse(readText('package-lock.json'));

it('is a version', () => {
  expect(version).toMatch(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/);
});

it('is that of the lock file, the chart and the program', () => {
  expect([lock.version, lock.packages[''].version]).toEqual([version, version]);
  expect(parse(readText('helm/proofgate/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect(packageVersion()).toBe(version);
  expect(readText('sdk/python/src/proofgate/__init__.py')).toContain(`\n__version__ = "${version}"\n`);
  expect(readText('sdk/go/signer.go')).toContain(`\nconst Version = "${version}"\n`);
  expect(readText('sdk/java/pom.xml')).toContain(`\n  <version>${version}</version>\n`);
  expect(readText('sdk/java/src/main/java/example/proofgate/Signer.java')).toContain(
    ` VERSION = "${version}";`,
  );
});

it('what else the lock file repeats of package.json is as it is there', () => {
  const root = lock.packages[''];
  expect([lock.name, root.license, root.engines]).toEqual([name, license, engines]);
  expect([root.dependencies, root.devDependencies]).toEqual([dependencies, devDependencies]);
});

describe.each<string>(workspaces)('the workspace %s', (folder) => {
  const manifest = JSON.parse(readText(`${folder}/package.json`));

  it('is of the same version, license, and versions of dependencies', () => {
    expect([manifest.version, manifest.license, manifest.engines]).toEqual([version, license, engines]);
    expect(readText(`${folder}/LICENSE`)).toBe(readText('LICENSE'));
    for (const [dependency, range] of Object.entries(manifest.dependencies)) {
      expect([dependency, range]).toEqual([dependency, dependencies[dependency]]);
    }
  });

  it('is in the lock file as it is', () => {
    const locked = lock.packages[folder];
    expect([locked.name, locked.version, locked.dependencies ?? {}]).toEqual([
      manifest.name,
      version,
      manifest.dependencies,
    ]);
  });
});

describe('CHANGELOG.md', () => {
  const sections = readText('CHANGELOG.md').split(/^## /m).slice(1);
  const headings = sections.map((section) => section.split('\n', 1)[0] ?? '');

  it('begins with what is not released, then the newest version first, each with its day', () => {
    const [unreleased, ...released] = headings;
    expect(unreleased).toBe('[Unreleased]');
    for (const heading of released) expect(heading).toMatch(/^\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d$/);
    const days = released.map((heading) => heading.slice(-10));
    expect(days).toEqual(days.toSorted().reverse());
  });

  it('says what users get with this version', () => {
    const index = headings.findIndex((heading) => heading.startsWith(`[${version}] `));
    expect(sections[index]).toMatch(/^### (?:Added|Changed|Deprecated|Removed|Fixed|Security)\n\n- \S/m);
  });

  it('has no kinds of change but those of Keep a Changelog', () => {
    const kinds = new Set([...readText('CHANGELOG.md').matchAll(/^### (.*)$/gm)].map(([, kind]) => kind));
    const known = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
    expect([...kinds].filter((kind) => !known.includes(kind ?? ''))).toEqual([]);
  });
});
