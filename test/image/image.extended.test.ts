/**
 * Checks the image's files, built once by the Dockerfile's own steps in an empty directory and environment: their list, their
 * completeness, and that processors share all else. test/release compiles twice: that is reproducible.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { HOME, NODE, SBOM } from '../../scripts/image/contents.mjs';
import { readText } from '../support/docs/markdown.ts';
import {
  type BuiltImage,
  buildImages,
  builtImages,
  type Cpu,
  hasImageTools,
  readImage,
  removeImage,
} from '../support/image/built.ts';
import { billOfMaterialsTests } from '../support/image/sbom.ts';
import { containerTests } from './container-tests.ts';
import { describeContainer, describeImage, describeWholeImage } from './describe-image.ts';
import { emulatedTests } from './emulated-tests.ts';
import { endToEndTests } from './end-to-end.ts';

const BUILD_TIMEOUT_MS = 600_000;
const MIB = 1024 * 1024;
const MOST_MIB_WITHOUT_NODE = 120;
const PROCESSORS: readonly Cpu[] = ['amd64', 'arm64'];

let images: { readonly [cpu in Cpu]: BuiltImage };
const imageFor = (cpu: Cpu) => images[cpu];

beforeAll(async () => {
  if (hasImageTools()) images = await builtImages(PROCESSORS);
}, BUILD_TIMEOUT_MS);

for (const cpu of PROCESSORS) describeImage(`the files for ${cpu}`, () => fileTests(cpu));

function fileTests(cpu: Cpu): void {
  const image = () => imageFor(cpu);
  const paths = () => image().files.map(({ path }) => path);

  it('are those of the list, all owned by one, for reading alone, and of one time', async () => {
    const found = await entriesBelow(image().root);
    const listed = [...paths(), ...image().links];
    expect(
      found
        .filter(({ kind }) => kind !== 'folder')
        .map(({ path }) => path)
        .toSorted(),
    ).toEqual(listed.toSorted());
    const modes = new Map(image().files.map(({ mode, path }) => [path, mode]));
    for (const { kind, mode, mtimeMs, path } of found) {
      expect({ path, mtimeMs }).toEqual({ path, mtimeMs: 0 });
      if (kind === 'file') expect({ path, mode }).toEqual({ path, mode: modes.get(path) });
      if (kind === 'folder') expect({ path, mode }).toEqual({ path, mode: '0555' });
    }
    expect([...new Set(modes.values())].toSorted()).toEqual(['0444', '0555']);
  });

  it('that may be run are node, the program and the libraries', () => {
    const programs = image()
      .files.filter(({ mode }) => mode === '0555')
      .map(({ path }) => path);
    const others = programs.filter((path) => !/^(?:usr\/)?lib(?:64)?\/[\w./+-]+\.so(?:\.\d+)*$/.test(path));
    expect(others.toSorted()).toEqual([`${HOME}/bin/proofgate`, NODE]);
    expect(programs.filter((path) => /\/(?:sh|bash|dash|busybox|npm|apt)$/.test(path))).toEqual([]);
  });

  it('hold nothing that only development wants', () => {
    const lock = JSON.parse(readText('package-lock.json'));
    const development = Object.keys(lock.packages).filter((path) => lock.packages[path].dev === true);
    expect(development.filter((path) => paths().some((file) => file.startsWith(`${HOME}/${path}/`)))).toEqual(
      [],
    );
    const superfluous =
      /\.(?:map|[cm]?ts|tsbuildinfo|md|markdown|html|ya?ml|cc|c|h)$|\/(?:tests?|__tests__|benchmarks?)\//;
    const licence = /\/(?:licen[cs]e|notice)[^/]*$/i;
    const page = `${HOME}/dist/console/index.html`;
    expect(paths().filter((path) => superfluous.test(path) && !licence.test(path))).toEqual([page]);
    expect(paths().filter((path) => path.startsWith(`${HOME}/dist/`)).length).toBeGreaterThan(300);
  });

  it('have native code of this processor alone', () => {
    const nodeCpu = cpu === 'amd64' ? 'x64' : cpu;
    const native = paths().filter((path) => path.endsWith('.node'));
    expect(native).toEqual([
      `${HOME}/node_modules/@libsql/linux-${nodeCpu}-gnu/index.node`,
      `${HOME}/node_modules/sodium-native/prebuilds/linux-${nodeCpu}/sodium-native.node`,
    ]);
  });

  it(`are less than ${MOST_MIB_WITHOUT_NODE} MiB beside Node.js`, () => {
    const bytes = image()
      .files.filter(({ path }) => path !== NODE)
      .reduce((sum, file) => sum + file.bytes, 0);
    expect(bytes / MIB).toBeGreaterThan(5);
    expect(bytes / MIB).toBeLessThan(MOST_MIB_WITHOUT_NODE);
  });

  describe('the bill of materials', () => billOfMaterialsTests(image, cpu));
}

describeImage('the two images', () => {
  it('are the same, but for what is of their processor', () => {
    const linesOf = (cpu: Cpu) => {
      const { list } = imageFor(cpu);
      const own = (path = '') =>
        path === NODE ||
        path === SBOM ||
        /\.node$|\/@libsql\/linux-|^(?:usr\/)?lib(?:64)?\/|^var\/lib\/dpkg\//.test(path);
      return list.split('\n').filter((line) => !own(/^(?:\d+ \d+ [0-9a-f]{64}|link) (\S+)/.exec(line)?.[1]));
    };
    expect(linesOf('arm64')).toEqual(linesOf('amd64'));
    expect(linesOf('amd64').length).toBeGreaterThan(1_000);
  });
});

describeWholeImage('two builds of other times', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pg-image-again-'));
  const root = join(folder, 'elsewhere');
  afterAll(() => {
    removeImage(root);
    rmSync(folder, { recursive: true, force: true });
  });

  it(
    'are the same, but for the time that they are given',
    async () => {
      await buildImages([{ cpu: 'amd64', out: root }], { SOURCE_DATE_EPOCH: '1700000000' });
      const withoutBom = (list: string) => list.split('\n').filter((line) => !line.endsWith(` ${SBOM}`));
      expect(withoutBom(readImage(root).list)).toEqual(withoutBom(imageFor('amd64').list));
      const bom = (image: BuiltImage) => JSON.parse(readFileSync(join(image.root, SBOM), 'utf8'));
      const { metadata, serialNumber, ...content } = bom(readImage(root));
      const { metadata: before, serialNumber: serialBefore, ...contentBefore } = bom(imageFor('amd64'));
      expect(content).toEqual(contentBefore);
      expect([metadata.timestamp, before.timestamp]).toEqual([
        '2023-11-14T22:13:20.000Z',
        '1970-01-01T00:00:00.000Z',
      ]);
      expect(serialNumber).not.toBe(serialBefore);
      expect(statSync(join(root, NODE)).mtimeMs).toBe(1_700_000_000_000);
    },
    BUILD_TIMEOUT_MS,
  );
});

describeContainer('with the image’s files alone', () => {
  containerTests(() => imageFor('amd64'));
  endToEndTests(() => imageFor('amd64'));
});

describeImage('for another processor, emulated', () => emulatedTests(() => imageFor('arm64')));

interface Entry {
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'link';
  readonly mode: string;
  readonly mtimeMs: number;
}

async function entriesBelow(root: string): Promise<readonly Entry[]> {
  const names = await readdir(root, { recursive: true });
  return Promise.all(
    names.map(async (path) => {
      const status = await lstat(join(root, path));
      const kind = status.isDirectory() ? 'folder' : status.isSymbolicLink() ? 'link' : 'file';
      const mode = (status.mode & 0o7777).toString(8).padStart(4, '0');
      return { path, kind, mode, mtimeMs: status.mtimeMs };
    }),
  );
}
