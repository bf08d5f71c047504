/** Runs the program once and keeps what it says. */
import { execFile } from 'node:child_process';
import { expect } from '@jest/globals';

export interface CliRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliRunOptions {
  readonly cwd: string;
  /** Beside PATH; nothing else is handed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

const TIMEOUT_MS = 20_000;

export function runCli(launcher: string, args: readonly string[], options: CliRunOptions): Promise<CliRun> {
  const env = { PATH: process.env.PATH, ...options.env };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [launcher, ...args],
      { cwd: options.cwd, env, timeout: TIMEOUT_MS },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ exitCode, stdout, stderr });
      },
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.stdin ?? '');
  });
}

/** Whatever a command does, it never shows a stack. */
export function expectNoStackTrace({ stdout, stderr }: CliRun): void {
  expect(`${stdout}\n${stderr}`).not.toMatch(/^\s+at /m);
  expect(stderr).not.toMatch(/\binternal\b/);
}

/** Fails as the contract says: nothing on stdout, one line on stderr that begins with the code. */
export function expectCliError(run: CliRun, code: string, exitCode: number): void {
  expectNoStackTrace(run);
  expect(run.stderr).toMatch(new RegExp(`^error: ${code}: [^\\n]+\\n$`));
  expect(run).toMatchObject({ exitCode, stdout: '' });
}
