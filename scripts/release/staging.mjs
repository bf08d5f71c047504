/**
 * Checks out, compiles and packs the files of a commit in a separate directory, so that a release contains no other
 * file of the checkout.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../failure.mjs';
import { FOLDER, productionFolders } from '../sbom/npm-packages.mjs';

/** Members of package.json that only development needs. */
const OF_DEVELOPMENT = ['scripts', 'devDependencies', 'overrides', 'workspaces'];

const MOST_OUTPUT_BYTES = 2 ** 28;

/** @returns standard output @throws Failure `tool_failed` with its last line */
export function tool(command, args, options = {}) {
  try {
    return execFileSync(command, args, {
      maxBuffer: MOST_OUTPUT_BYTES,
      stdio: ['pipe', 'pipe', 'pipe'],
      ...options,
    });
  } catch (error) {
    const lines = [error.stderr, error.stdout].map((text) => String(text ?? '').trim()).filter(Boolean);
    const last = lines[0]?.split('\n').at(-1) ?? error.code ?? 'no output';
    throw new Failure('tool_failed', `${command} ${args[0]}: ${last}`);
  }
}

/** @throws Failure `worktree_not_clean`: what would be released is not what is tested */
export function assertCommitted(root) {
  const changed = tool('git', ['status', '--porcelain'], { cwd: root })
    .toString()
    .split('\n')
    .filter(Boolean);
  if (changed.length === 0) return;
  throw new Failure(
    'worktree_not_clean',
    `commit first, a release is of a commit: ${changed.length} changed, such as ${changed[0].slice(3)}`,
  );
}

/** Seconds since 1970: the time of everything in the release. */
export function commitTime(root) {
  return Number(tool('git', ['log', '-1', '--format=%ct'], { cwd: root }));
}

/**
 * Stages the commit's files, compiled as for the image, with a lock file that is installed with the package, and the workspaces, compiled.
 * The compiler and all types come from a clean install of the lock file, because the checkout's node_modules may differ.
 */
export function stage(root, directory) {
  mkdirSync(directory);
  const archive = tool('git', ['-c', 'tar.umask=0022', 'archive', '--format=tar', 'HEAD'], { cwd: root });
  tool('tar', ['--extract', '--directory', directory], { input: archive });
  tool('sh', [join('scripts', 'image', 'compile.sh')], {
    cwd: directory,
    env: { ...process.env, npm_config_prefer_offline: 'true' },
  });
  tool('npm', ['run', '--silent', 'build:packages'], { cwd: directory });
  rmSync(join(directory, 'node_modules'), { recursive: true });
  const lock = readJson(join(directory, 'package-lock.json'));
  writeJson(join(directory, 'npm-shrinkwrap.json'), productionLock(lock));
  const { workspaces } = readJson(join(directory, 'package.json'));
  for (const folder of ['', ...workspaces]) dropDevelopment(join(directory, folder, 'package.json'));
  return lock;
}

function dropDevelopment(file) {
  const manifest = readJson(file);
  for (const member of OF_DEVELOPMENT) delete manifest[member];
  writeJson(file, manifest);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function writeJson(file, content) {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}

/** The lock file of the package: the tested versions, without development dependencies and workspaces. */
export function productionLock(lock) {
  const { devDependencies: _development, workspaces: _workspaces, ...root } = lock.packages[''];
  const paths = productionFolders(lock).map((folder) => FOLDER + folder);
  const entries = paths.map((path) => [path, lock.packages[path]]);
  return { ...lock, packages: { '': root, ...Object.fromEntries(entries) } };
}

/** npm gives all files in a package the same time and modes. */
export function packNpm(directory, to) {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', to];
  tool('npm', args, { cwd: directory });
}

/** helm writes the current time into the package, so its content is packed again with the commit's time. */
export function packChart({ helm, chart, directory, to, epochSeconds }) {
  mkdirSync(directory);
  tool(helm, ['package', chart, '--destination', directory]);
  const [packed] = tool('ls', [directory]).toString().split('\n');
  const unpacked = join(directory, 'unpacked');
  mkdirSync(unpacked);
  tool('tar', ['--extract', '--gzip', '--directory', unpacked, '--file', join(directory, packed)]);
  const same = [
    '--sort=name',
    `--mtime=@${epochSeconds}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
  ];
  const tar = tool('tar', ['--create', '--format=ustar', ...same, '--directory', unpacked, 'proofgate']);
  const zipped = tool('gzip', ['--no-name', '--best', '--stdout'], { input: tar });
  const file = join(directory, 'chart.tgz');
  writeFileSync(file, zipped);
  renameAcross(file, to);
}

function renameAcross(from, to) {
  try {
    renameSync(from, to);
  } catch {
    cpSync(from, to);
  }
}
