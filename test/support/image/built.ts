/** Builds the image's files with the Dockerfile's own steps, once for each state of the inputs. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { copiedBy, parseDockerfile } from '../../../scripts/image/dockerfile.mjs';
import { checkoutPath } from '../harness/checkout.ts';

export const IMAGE_TOOLS = checkoutPath('.cache', 'image');

export type Cpu = 'amd64' | 'arm64';

interface ImageFile {
  readonly path: string;
  readonly mode: string;
  readonly bytes: number;
}

export interface BuiltImage {
  readonly root: string;
  /** The file list as written. */
  readonly list: string;
  readonly files: readonly ImageFile[];
  /** Paths of symbolic links. */
  readonly links: readonly string[];
}

export function hasImageTools(): boolean {
  return existsSync(join(IMAGE_TOOLS, 'installed'));
}

/** The first call takes a minute. */
export async function builtImages<C extends Cpu>(
  cpus: readonly C[],
): Promise<{ readonly [cpu in C]: BuiltImage }> {
  const builds = checkoutPath('.build', 'image');
  mkdirSync(builds, { recursive: true });
  const state = stateOfInputs();
  const rootOf = (cpu: Cpu) => join(builds, `${cpu}-${state}`);
  const missing = cpus.filter((cpu) => !existsSync(`${rootOf(cpu)}.files`));
  for (const name of readdirSync(builds).filter((each) =>
    missing.some((cpu) => each.startsWith(`${cpu}-`)),
  )) {
    removeImage(join(builds, name));
  }
  const unfinished = missing.map((cpu) => ({ cpu, out: `${rootOf(cpu)}-${process.pid}` }));
  if (missing.length > 0) await buildImages(unfinished);
  for (const { cpu, out } of unfinished) {
    renameSync(out, rootOf(cpu));
    renameSync(`${out}.files`, `${rootOf(cpu)}.files`);
  }
  const images = cpus.map((cpu) => [cpu, readImage(rootOf(cpu))] as const);
  return Object.fromEntries(images) as { readonly [cpu in C]: BuiltImage };
}

/** Compiles once for all processors. */
export async function buildImages(
  images: readonly { readonly cpu: Cpu; readonly out: string }[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const script = checkoutPath('scripts', 'image', 'outside.mjs');
  await promisify(execFile)(process.execPath, [script, ...images.map(({ cpu, out }) => `--${cpu}=${out}`)], {
    env: { ...process.env, ...env },
  });
}

export function readImage(root: string): BuiltImage {
  const list = readFileSync(`${root}.files`, 'utf8');
  const lines = list.split('\n').filter(Boolean);
  const files = lines.flatMap((line) => {
    const [, mode, bytes, path] = /^(\d{4}) (\d+) [0-9a-f]{64} (.+)$/.exec(line) ?? [];
    return path === undefined ? [] : [{ path, mode: mode ?? '', bytes: Number(bytes) }];
  });
  const links = lines.flatMap((line) => /^link (\S+) \S+$/.exec(line)?.[1] ?? []);
  if (files.length + links.length !== lines.length) throw new Error('the list has lines of another form');
  return { root, list, files, links };
}

/** Makes the read-only directories writable, and removes them. */
export function removeImage(root: string): void {
  if (existsSync(root)) for (const folder of foldersBelow(root)) chmodSync(folder, 0o755);
  rmSync(root, { recursive: true, force: true });
  rmSync(`${root}.files`, { force: true });
}

function foldersBelow(root: string): readonly string[] {
  const entries = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [root, ...entries.flatMap(({ name }) => foldersBelow(join(root, name)))];
}

/** Hash of all files that the Dockerfile copies, and of the replacement for its base image. */
function stateOfInputs(): string {
  const dockerfile = readFileSync(checkoutPath('Dockerfile'), 'utf8');
  const steps = parseDockerfile(dockerfile).stages.flatMap((stage) => stage.steps);
  const copies = steps.filter(({ flags, instruction }) => instruction === 'COPY' && flags.from === undefined);
  const sources = copies.flatMap((step) => copiedBy(step).sources.map((source) => checkoutPath(source)));
  const files = [
    join(IMAGE_TOOLS, 'installed'),
    checkoutPath('Dockerfile'),
    checkoutPath('.dockerignore'),
    ...sources,
  ];
  const hash = createHash('sha256');
  for (const file of files.flatMap(filesOf)) hash.update(file).update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

function filesOf(path: string): readonly string[] {
  if (!existsSync(path)) throw new Error(`${path} is not there`);
  const entries = readdirSyncOrNone(path);
  if (entries === undefined) return [path];
  return entries.sort().flatMap((name) => filesOf(join(path, name)));
}

function readdirSyncOrNone(path: string): string[] | undefined {
  try {
    return readdirSync(path);
  } catch {
    return undefined;
  }
}
