/** Released programs from the npm packages in `releases/`. They use the node_modules of the checkout. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutPath } from './checkout.ts';

export interface Release {
  readonly version: string;
  /** Entry file for Node.js. */
  readonly program: string;
}

const PACKAGE = /^proofgate-(\d+\.\d+\.\d+)\.tgz$/;

/** Unpacks every release below `.build/`, the oldest first. @throws when the folder has none, or a file is not a package */
export function releases(): readonly Release[] {
  const folder = checkoutPath('test', 'compatibility', 'releases');
  const found = readdirSync(folder).map((file) => {
    const version = PACKAGE.exec(file)?.[1];
    if (version === undefined) throw new Error(`${file} is not named like a package of a release`);
    return { version, program: join(unpacked(join(folder, file)), 'package', 'bin', 'proofgate') };
  });
  if (found.length === 0) throw new Error(`no release in ${folder}`);
  return found.toSorted((one, other) => compareVersions(one.version, other.version));
}

/** The two newest, the older one first: what an upgrade may start from. */
export function upgradableReleases(): readonly Release[] {
  return releases().slice(-2);
}

/** Those that are too old for what came with `version`. */
export function releasesBefore(version: string): readonly Release[] {
  return releases().filter((release) => compareVersions(release.version, version) < 0);
}

function compareVersions(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

/** Unpacks into a temporary folder and renames it to its content hash, because test files run concurrently. */
function unpacked(file: string): string {
  const digest = createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 16);
  const folder = checkoutPath('.build', 'compatibility', digest);
  if (existsSync(folder)) return folder;
  mkdirSync(join(folder, '..'), { recursive: true });
  const partial = mkdtempSync(`${folder}-`);
  execFileSync('tar', ['--extract', '--gzip', '--file', file, '--directory', partial]);
  try {
    renameSync(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
