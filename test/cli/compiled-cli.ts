/**
 * The program as it is shipped: launcher, package.json, proto and compiled code, in a folder of its own below `.build/`, so that
 * builds which run at the same time do not meet. Types are checked elsewhere.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

export interface CompiledCli {
  /** Absolute path of the launcher. */
  readonly launcher: string;
  remove(): Promise<void>;
}

/** Takes some seconds. */
export async function compileCli(): Promise<CompiledCli> {
  await mkdir(join(ROOT, '.build'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.build', 'cli-under-test-'));
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'));
  await cp(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true });
  await cp(join(ROOT, 'proto'), join(folder, 'proto'), { recursive: true });
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags = [
    '--noCheck',
    '--declaration',
    'false',
    '--incremental',
    'false',
    '--tsBuildInfoFile',
    'null',
  ];
  const args = ['-p', join(ROOT, 'tsconfig.build.json'), ...flags, '--outDir', join(folder, 'dist')];
  await promisify(execFile)(process.execPath, [compiler, ...args]);
  return {
    launcher: join(folder, 'bin', 'proofgate'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
