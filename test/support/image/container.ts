/** Runs the image's program with only the image's files, as the user in the Dockerfile. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { NODE, USER } from '../../../scripts/image/contents.mjs';
import { parseDockerfile } from '../../../scripts/image/dockerfile.mjs';
import { checkoutPath } from '../harness/checkout.ts';
import type { BuiltImage } from './built.ts';

const IN_ROOT = checkoutPath('test', 'image', 'in-root.sh');
const { stages } = parseDockerfile(readFileSync(checkoutPath('Dockerfile'), 'utf8'));
const steps = stages.at(-1)?.steps ?? [];

/** Entry point and environment from the Dockerfile. */
export const ENTRYPOINT = steps.find(({ instruction }) => instruction === 'ENTRYPOINT')?.exec ?? [];
export const ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  steps
    .filter(({ instruction }) => instruction === 'ENV')
    .flatMap(({ text }) => text.split(/\s+/).map((pair) => pair.split('=', 2))),
);

/** @param shared folders of this machine that the process may write to */
export function containerCommand(image: BuiltImage, shared: readonly string[], user = USER.id) {
  return [IN_ROOT, image.root, `${user}:${user}`, shared.join(' ')];
}

/** Runs the image's entry point to completion, with only the image's environment. */
export function runInContainer(
  image: BuiltImage,
  args: readonly string[],
  shared: readonly string[] = [],
): SpawnSyncReturns<string> {
  return runFile(image, [...ENTRYPOINT, ...args], shared);
}

/** Runs a module script with the image's Node.js. */
export function evaluateInContainer(image: BuiltImage, script: string): SpawnSyncReturns<string> {
  return runFile(image, [`/${NODE}`, '--input-type=module', '-e', script], []);
}

function runFile(
  image: BuiltImage,
  command: readonly string[],
  shared: readonly string[],
): SpawnSyncReturns<string> {
  const [program = '', ...args] = containerCommand(image, shared);
  // The commands that prepare the root need this machine's PATH. The image has no env(1), so node gets its environment here.
  const env = { ...ENVIRONMENT, PATH: `${process.env.PATH}` };
  return spawnSync(program, [...args, ...command], { encoding: 'utf8', env, maxBuffer: 2 ** 26 });
}
