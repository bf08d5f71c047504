/**
 * `make release KEY=FILE`: makes the npm packages, the chart's package, bills of materials, their checksums, and a signature
 * over those, from the last commit into .build/release/. The same commit and key give the same bytes.
 * Usage: release.mjs [--key=FILE] [--out=DIRECTORY]
 */
import { createHash, sign } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Failure, tellingFailures } from '../failure.mjs';
import { describeMiddleware, describeRelease } from '../sbom/release.mjs';
import { entryOf } from './changelog.mjs';
import { CHECKSUMS, filesOf, isOfRelease, SIGNATURE } from './files.mjs';
import { readSigningKey } from './keys.mjs';
import { assertCommitted, commitTime, packChart, packNpm, stage, tool } from './staging.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HELM = join(ROOT, '.cache', 'helm', 'bin', 'helm');
const PYTHON_PACKAGES = join(ROOT, '.cache', 'sdk-python', 'packages');

/** Modes of packed files are those of the files here. */
process.umask(0o022);

await tellingFailures(async () => {
  const options = {
    key: { type: 'string' },
    out: { type: 'string', default: join(ROOT, '.build', 'release') },
  };
  const { values } = parseArgs({ options });
  const key = readSigningKey(values.key);
  assertReplaceable(values.out);
  const version = readVersion();
  assertCommitted(ROOT);
  if (!existsSync(HELM)) throw new Failure('helm_missing', 'install Go, then: make helm-tools');
  if (!existsSync(PYTHON_PACKAGES))
    throw new Failure('sdk_tools_missing', 'install Python 3.9 with pip, then: make sdk-tools');
  mkdirSync(dirname(values.out), { recursive: true });
  const work = mkdtempSync(join(dirname(values.out), 'making-release-'));
  try {
    const release = join(work, 'release');
    mkdirSync(release);
    make(version, work, release);
    signChecksums(release, key);
    removeRelease(values.out);
    renameSync(release, values.out);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  console.log(`${version}: ${readdirSync(values.out).sort().join(', ')} in ${values.out}`);
});

/**
 * @throws Failure `out_not_a_release` when the directory has a file that is not part of a release, because it would be
 * deleted
 */
function assertReplaceable(out) {
  if (!existsSync(out)) return;
  const names = statSync(out).isDirectory() ? readdirSync(out) : undefined;
  const foreign = names?.find((name) => !isOfRelease(name) || !statSync(join(out, name)).isFile());
  if (names?.length === 0 || (names?.includes(CHECKSUMS) && foreign === undefined)) return;
  const what = foreign === undefined ? `it holds no ${CHECKSUMS}` : `it holds ${foreign}`;
  throw new Failure(
    'out_not_a_release',
    `${out} would be replaced, and is no release: ${names === undefined ? 'it is no directory' : what}; name another with --out`,
  );
}

/** Checks the directory again, because building a release takes a while. */
function removeRelease(out) {
  assertReplaceable(out);
  rmSync(out, { recursive: true, force: true });
}

/** @throws Failure unless every package.json, the lock file, the chart and the changelog have the version */
function readVersion() {
  const { version, workspaces } = readJson(ROOT, 'package.json');
  const lock = readJson(ROOT, 'package-lock.json');
  const chart = readFileSync(join(ROOT, 'helm', 'proofgate', 'Chart.yaml'), 'utf8');
  const others = {
    'package-lock.json': [lock.version, lock.packages[''].version],
    'helm/proofgate/Chart.yaml': [...chart.matchAll(/^(?:version|appVersion): (.*)$/gm)].map(
      ([, text]) => text,
    ),
    ...Object.fromEntries(
      workspaces.map((folder) => {
        const file = join(folder, 'package.json');
        return [file, [readJson(ROOT, file).version, lock.packages[folder]?.version]];
      }),
    ),
  };
  for (const [file, versions] of Object.entries(others)) {
    const other = versions.find((each) => each !== version);
    if (other === undefined && versions.length === 2) continue;
    throw new Failure(
      'version_mismatch',
      `package.json is ${version}, ${file} is not: npm install --package-lock-only, make chart`,
    );
  }
  entryOf(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version);
  return version;
}

function readJson(...path) {
  return JSON.parse(readFileSync(join(...path), 'utf8'));
}

function make(version, work, release) {
  const { chart, middlewareSbom, sbom } = filesOf(version);
  const epochSeconds = commitTime(ROOT);
  const staging = join(work, 'staging');
  const lock = stage(ROOT, staging);
  const middleware = join(staging, 'packages', 'middleware');
  for (const folder of [staging, middleware, join(staging, 'sdk', 'node')]) packNpm(folder, release);
  const directory = join(work, 'chart');
  packChart({
    helm: HELM,
    chart: join(staging, 'helm', 'proofgate'),
    directory,
    to: join(release, chart),
    epochSeconds,
  });
  const manifest = readJson(staging, 'package.json');
  packPythonGoAndJava(staging, release);
  const write = (name, document) =>
    writeFileSync(join(release, name), `${JSON.stringify(document, null, 2)}\n`);
  write(sbom, describeRelease({ lock, epochSeconds, manifest, built: staging }));
  write(
    middlewareSbom,
    describeMiddleware({ lock, epochSeconds, manifest: readJson(middleware, 'package.json') }),
  );
}

function packPythonGoAndJava(staging, release) {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: PYTHON_PACKAGES };
  tool('python3', [join('scripts', 'sdk', 'pack.py'), release], { cwd: staging, env });
}

/** In the form of sha256sum. The signature is the 64 bytes that `openssl pkeyutl -verify -rawin` takes. */
function signChecksums(release, key) {
  const lines = readdirSync(release)
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(release, name)))
          .digest('hex')}  ${name}\n`,
    );
  const text = lines.join('');
  writeFileSync(join(release, CHECKSUMS), text);
  writeFileSync(join(release, SIGNATURE), sign(null, Buffer.from(text), key));
}
