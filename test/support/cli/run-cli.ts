/** Runs the program once and captures its output. */
import { execFile } from 'node:child_process';
import { expect } from '@jest/globals';
import { remainingMs } from '../wait.ts';
import type { CliRun } from './cli-run.ts';

export type { CliRun };

export interface CliRunOptions {
  readonly cwd: string;
  /** Variables beside PATH; the process inherits no others. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

const ELSEWHERE_MS = 20_000;

export function runCli(launcher: string, args: readonly string[], options: CliRunOptions): Promise<CliRun> {
  const env = { PATH: process.env.PATH, ...options.env };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [launcher, ...args],
      { cwd: options.cwd, env, timeout: remainingMs(ELSEWHERE_MS) },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ exitCode, stdout, stderr });
      },
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.stdin ?? '');
  });
}

/** Expects that the output contains no stack trace. */
export function expectNoStackTrace({ stdout, stderr }: CliRun): void {
  expect(`${stdout}\n${stderr}`).not.toMatch(/^\s+at /m);
  expect(stderr).not.toMatch(/\binternal\b/);
}

/** Expects the documented form of a failure: nothing on stdout, and one line on stderr that begins with the code. */
export function expectCliError(run: CliRun, code: string, exitCode: number): void {
  expectNoStackTrace(run);
  expect(run.stderr).toMatch(new RegExp(`^error: ${code}: [^\\n]+\\n$`));
  expect(run).toMatchObject({ exitCode, stdout: '' });
}
