/** Starts test scripts as processes of their own, so that tests can kill them. */
import { fileURLToPath } from 'node:url';
import { type Child, startChild } from './child.ts';

const HOOKS = new URL('./typescript-hooks.mjs', import.meta.url).href;
const REGISTER = `data:text/javascript,import { register } from 'node:module'; register('${HOOKS}');`;

/**
 * @param script beside this file
 * @param settings reaches the script as JSON in `PROOFGATE_TEST_SETTINGS`: not in its arguments, where others see them
 */
export function runTypescript(script: string, settings: object): Child {
  return startChild({
    command: process.execPath,
    args: typescriptArguments(script),
    env: { PROOFGATE_TEST_SETTINGS: JSON.stringify(settings) },
  });
}

/** Arguments for tests that start Node themselves. */
export function typescriptArguments(script: string): readonly string[] {
  return ['--import', REGISTER, fileURLToPath(new URL(script, import.meta.url))];
}

/** Inside the script. */
export function scriptSettings<T>(): T {
  return JSON.parse(process.env.PROOFGATE_TEST_SETTINGS ?? '{}') as T;
}
