/** Checks the content of a release's packages, and that they install and run. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { hasImageTools } from '../support/image/built.ts';
import { expectAsLocked, expectWholeGraph, pathsOf, schemaFaults } from '../support/image/sbom.ts';

const { version } = JSON.parse(readText('package.json'));
const lock = JSON.parse(readText('package-lock.json'));

export function contentTests(release: () => string): void {
  const folder = mkdtempSync(join(tmpdir(), 'pg-release-content-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name: string) => join(release(), name);
  const listed = (name: string) =>
    execFileSync('tar', ['--list', '--gzip', '--file', at(name)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean);
  const bom = () => JSON.parse(readFileSync(at(`proofgate-${version}.cdx.json`), 'utf8'));

  it('has packages, chart, bill of materials, checksums and their signature', () => {
    expect(readdirSync(release()).toSorted()).toEqual([
      'SHA256SUMS',
      'SHA256SUMS.sig',
      `proofgate-${version}-py3-none-any.whl`,
      `proofgate-${version}.cdx.json`,
      `proofgate-${version}.tar.gz`,
      `proofgate-${version}.tgz`,
      `proofgate-chart-${version}.tgz`,
      `proofgate-client-${version}.tgz`,
      `proofgate-go-${version}.zip`,
      `proofgate-java-${version}.zip`,
      `proofgate-middleware-${version}.cdx.json`,
      `proofgate-middleware-${version}.tgz`,
    ]);
  });

  it('packs the program, its documents and the versions that it was tested with', () => {
    const files = listed(`proofgate-${version}.tgz`).map((file) => file.slice('package/'.length));
    const whole = [
      'bin/proofgate',
      'dist/cli/main.js',
      'dist/console/index.html',
      'dist/console/LICENSES.md',
    ];
    for (const file of [...whole, 'README.md', 'LICENSE', 'npm-shrinkwrap.json']) {
      expect(files).toContain(file);
    }
    const folders = new Set(files.filter((file) => file.includes('/')).map((file) => file.split('/', 1)[0]));
    expect([...folders].toSorted()).toEqual(['bin', 'bundles', 'deploy', 'dist', 'docs', 'envoy', 'proto']);
    const others = files.filter((file) => /^dist\/(?!console\/).*(?<!\.js)$/.test(file));
    expect(others.length).toBeGreaterThan(0);
    expect(
      others.filter((file) => !/^dist\/bundle\/format\/schemas\/[a-z-]+\.schema\.json$/.test(file)),
    ).toEqual([]);
  });

  const readPacked = (tgz: string, file: string) => {
    const args = ['--extract', '--gzip', '--to-stdout', '--file', at(tgz), `package/${file}`];
    return JSON.parse(execFileSync('tar', args, { encoding: 'utf8', maxBuffer: 2 ** 26 }));
  };

  it('packs the program without the workspaces, and its lock file as well', () => {
    const tgz = `proofgate-${version}.tgz`;
    expect(readPacked(tgz, 'package.json').workspaces).toBeUndefined();
    const { '': root, ...packages } = readPacked(tgz, 'npm-shrinkwrap.json').packages;
    expect(root.workspaces).toBeUndefined();
    const others = Object.entries<{ readonly link?: boolean }>(packages).filter(
      ([path, { link }]) => link === true || !path.startsWith('node_modules/'),
    );
    expect(others).toEqual([]);
  });

  /** Checks that a library is of the version and has the files that it exports. @returns its package.json */
  const expectLibrary = (name: string) => {
    const tgz = `proofgate-${name}-${version}.tgz`;
    const manifest = readPacked(tgz, 'package.json');
    expect([manifest.name, manifest.version]).toEqual([`@proofgate/${name}`, version]);
    expect(manifest.scripts).toBeUndefined();
    const files = listed(tgz);
    for (const { types, default: code } of Object.values<Record<string, string>>(manifest.exports)) {
      expect(files).toEqual(
        expect.arrayContaining([types, code].map((file) => file?.replace('.', 'package'))),
      );
    }
    return manifest;
  };

  it('packs the Node SDK with its declarations and without dependencies', () => {
    expect(expectLibrary('client').dependencies).toEqual({});
  });

  it('the Node SDK installs offline in an empty directory, and loads', () => {
    const project = join(folder, 'client');
    mkdirSync(project);
    const run = (program: string, ...args: readonly string[]) =>
      execFileSync(program, [...args], { cwd: project, encoding: 'utf8' });
    run('npm', 'install', '--offline', '--no-audit', '--no-fund', at(`proofgate-client-${version}.tgz`));
    const loads = "import { Signer } from '@proofgate/client'; console.log(typeof Signer.open)";
    expect(run(process.execPath, '--input-type=module', '--eval', loads)).toBe('function\n');
  });

  it('packs the middleware with its declarations, and lists what its dependencies lead to', () => {
    const manifest = expectLibrary('middleware');
    const middlewareBom = JSON.parse(readFileSync(at(`proofgate-middleware-${version}.cdx.json`), 'utf8'));
    const names = middlewareBom.components.map(({ group, name }: { group?: string; name: string }) =>
      group === undefined ? name : `${group}/${name}`,
    );
    expect(names).toEqual(expect.arrayContaining(Object.keys(manifest.dependencies)));
    expect(names.filter((name: string) => /fastify|grpc|kysely|^pg$|libsql|commander/.test(name))).toEqual(
      [],
    );
    expectAsLocked(middlewareBom.components);
    expectWholeGraph(middlewareBom);
    if (hasImageTools()) expect(schemaFaults(middlewareBom)).toEqual([]);
  });

  it('packs a chart of the version that renders', () => {
    const helm = checkoutPath('.cache', 'helm', 'bin', 'helm');
    const chart = at(`proofgate-chart-${version}.tgz`);
    const about = execFileSync(helm, ['show', 'chart', chart], { encoding: 'utf8' });
    expect(about).toMatch(new RegExp(`^version: ${version.replaceAll('.', '\\.')}$`, 'm'));
    const values = checkoutPath('test', 'helm', 'values', 'verifier-memory.yaml');
    expect(
      execFileSync(helm, ['template', 'rel', chart, '--values', values], { encoding: 'utf8' }),
    ).toContain('kind: Deployment');
    const notOurs = listed(`proofgate-chart-${version}.tgz`).filter((file) => !file.startsWith('proofgate/'));
    expect(notOurs).toEqual([]);
  });

  it('lists every package that is installed where it runs, on any system', () => {
    const production = Object.keys(lock.packages).filter(
      (path) => path.startsWith('node_modules/') && !lock.packages[path].dev && !lock.packages[path].link,
    );
    const components: Parameters<typeof expectAsLocked>[0] = bom().components;
    const paths = components.flatMap(({ properties }) => pathsOf(properties));
    expect(paths.toSorted()).toEqual(production.toSorted());
    expectAsLocked(components);
    expectWholeGraph(bom());
    expect(bom().metadata.component).toMatchObject({ name: 'proofgate', version });
    if (hasImageTools()) expect(schemaFaults(bom())).toEqual([]);
  });

  it('installs in an empty directory, and runs', () => {
    const project = join(folder, 'project');
    mkdirSync(project);
    const npm = (...args: readonly string[]) =>
      execFileSync('npm', [...args], { cwd: project, encoding: 'utf8' });
    npm(
      'install',
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      at(`proofgate-${version}.tgz`),
    );
    expect(npm('exec', '--offline', '--', 'proofgate', '--version').trim()).toBe(version);
    expect(npm('exec', '--offline', '--', 'proofgate', 'keygen', '--out', 'key.pem')).toBeDefined();
  });

  it('unpacked, installs the versions of the lock file, and runs', () => {
    const options = { cwd: folder, encoding: 'utf8' as const };
    execFileSync('tar', ['--extract', '--gzip', '--file', at(`proofgate-${version}.tgz`)], options);
    const unpacked = { ...options, cwd: join(folder, 'package') };
    execFileSync('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'], unpacked);
    const ran = execFileSync(process.execPath, ['bin/proofgate', '--version'], unpacked);
    expect(ran.trim()).toBe(version);
    const file = join(folder, 'package', 'node_modules', '.package-lock.json');
    const installed = Object.entries<{ readonly version: string }>(
      JSON.parse(readFileSync(file, 'utf8')).packages,
    );
    const others = installed.filter(([path, entry]) => lock.packages[path]?.version !== entry.version);
    expect(others).toEqual([]);
    expect(installed.length).toBeGreaterThan(100);
  });
}
