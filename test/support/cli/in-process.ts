/** Runs a command line inside the test process, for commands that talk to a server of the test or keep running. */
import { Writable } from 'node:stream';
import { runCli } from '../../../src/cli/program.ts';
import { type CliContext, type Environment, Output } from '../../../src/process/program/output.ts';
import type { CliRun } from './cli-run.ts';

class Memory extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(Buffer.from(chunk));
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

export interface RunningCli {
  /** Output so far. */
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<CliRun>;
}

/** @param terminal where it may ask */
export function startInProcess(
  args: readonly string[],
  env: Environment = {},
  terminal?: CliContext['terminal'],
): RunningCli {
  const stdout = new Memory();
  const stderr = new Memory();
  const output = new Output(stdout, stderr, env);
  const ended = runCli(args, { env, output, version: '0.0.0', terminal }).then((exitCode) => ({
    exitCode,
    stdout: stdout.text,
    stderr: stderr.text,
  }));
  return { stdout: () => stdout.text, stderr: () => stderr.text, ended };
}

export function runInProcess(
  args: readonly string[],
  env: Environment = {},
  terminal?: CliContext['terminal'],
): Promise<CliRun> {
  return startInProcess(args, env, terminal).ended;
}
