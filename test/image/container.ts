/** Runs the image's program with the image's files alone, as the user that the Dockerfile names. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { LAUNCHER, NODE, USER } from '../../scripts/image/contents.mjs';
import { parseDockerfile } from '../../scripts/image/dockerfile.mjs';
import { checkoutPath } from '../e2e/harness/checkout.ts';
import type { BuiltImage } from './built.ts';

const IN_ROOT = checkoutPath('test', 'image', 'in-root.sh');
const { stages } = parseDockerfile(readFileSync(checkoutPath('Dockerfile'), 'utf8'));
const steps = stages.at(-1)?.steps ?? [];

/** What the Dockerfile says of the program: its command line and its environment. */
export const ENTRYPOINT = steps.find(({ instruction }) => instruction === 'ENTRYPOINT')?.exec ?? [];
export const ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  steps
    .filter(({ instruction }) => instruction === 'ENV')
    .flatMap(({ text }) => text.split(/\s+/).map((pair) => pair.split('=', 2))),
);

/** @param shared folders of this machine that it may write to */
export function containerCommand(image: BuiltImage, shared: readonly string[], user = USER.id) {
  return [IN_ROOT, image.root, `${user}:${user}`, shared.join(' ')];
}

/** The image's entry point, run to its end, with the image's environment and nothing else. */
export function runInContainer(
  image: BuiltImage,
  args: readonly string[],
  shared: readonly string[] = [],
): SpawnSyncReturns<string> {
  return runFile(image, [...ENTRYPOINT, ...args], shared);
}

/** Node.js of the image, with a script that is a module. */
export function evaluateInContainer(image: BuiltImage, script: string): SpawnSyncReturns<string> {
  return runFile(image, [`/${NODE}`, '--input-type=module', '-e', script], []);
}

function runFile(
  image: BuiltImage,
  command: readonly string[],
  shared: readonly string[],
): SpawnSyncReturns<string> {
  const [program = '', ...args] = containerCommand(image, shared);
  // What prepares the root is found by this machine's path; env(1) is not in the image, so node is told its environment here.
  const env = { ...ENVIRONMENT, PATH: `${process.env.PATH}` };
  return spawnSync(program, [...args, ...command], { encoding: 'utf8', env, maxBuffer: 2 ** 26 });
}

export { LAUNCHER };
