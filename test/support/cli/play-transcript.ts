/** Plays a transcript in its own folder. */
import { execFileSync } from 'node:child_process';
import { chmod, copyFile, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { waitFor } from '../wait.ts';
import { type CliRun, expectCliError, expectNoStackTrace, type runCli } from './run-cli.ts';
import type { Step, Transcript } from './transcript.ts';

type RunOptions = Parameters<typeof runCli>[2];
type RunProgram = (
  args: readonly string[],
  options: RunOptions & {
    /** Whether the transcript expects an error. */
    readonly isRefused: boolean;
  },
) => Promise<CliRun>;

/**
 * @param names values of `{NAME}` in the transcript
 * @throws the failed expectation, prefixed with the line of the transcript
 */
export async function playTranscript(
  transcript: Transcript,
  run: RunProgram,
  folder: string,
  names: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const [name, content] of transcript.files)
    await writeFile(join(folder, name), content, { mode: 0o600 });
  const player = new Player(run, folder, names);
  for (const [at, step] of transcript.steps.entries()) {
    try {
      await player.play(step, transcript.steps[at + 1]?.verb === 'error');
    } catch (error) {
      throw new Error(`line ${step.line}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      });
    }
  }
  player.finishRun();
}

class Player {
  readonly #program: RunProgram;
  readonly #names: Map<string, string>;
  readonly #folder: string;
  readonly #env: Record<string, string> = {};
  #stdin = '';
  #args: readonly string[] = [];
  #run: CliRun | undefined;
  #exitExpected = false;
  #stderrExpected = false;

  constructor(program: RunProgram, folder: string, names: Readonly<Record<string, string>>) {
    this.#program = program;
    this.#folder = folder;
    this.#names = new Map(Object.entries(names));
  }

  /** @param isRefused whether the next step expects an error */
  async play({ verb, words, rest }: Step, isRefused: boolean): Promise<void> {
    if (verb === '$')
      return this.#runProgram(
        words.map((word) => this.#withNames(word)),
        isRefused,
      );
    if (verb === 'set') return void this.#setVariable(this.#withNames(rest));
    if (verb === 'keep') return void this.#keepName(rest);
    if (verb === 'until') return this.#repeatUntil(new RegExp(this.#withNames(rest), 'm'));
    if (verb === 'stdin') {
      this.#stdin = rest;
      return;
    }
    const [first = '', second = ''] = words;
    if (await this.#prepareFile(verb, first, second)) return;
    if (await this.#checkFile(verb, first, second)) return;
    this.#checkRun(verb, first, this.#withNames(rest), second);
  }

  #withNames(text: string): string {
    return text.replace(/\{([A-Z_]+)\}/g, (whole, name: string) => this.#names.get(name) ?? whole);
  }

  #keepName(rest: string): void {
    const [, name = '', pattern = ''] = /^(\S+) (.*)$/.exec(rest) ?? [];
    expect(this.#run?.stdout).toMatch(new RegExp(pattern, 'm'));
    this.#names.set(name, new RegExp(pattern, 'm').exec(this.#run?.stdout ?? '')?.[1] ?? '');
  }

  /** Expects exit 0 and an empty stderr unless the transcript states something else. */
  finishRun(): void {
    const run = this.#run;
    this.#run = undefined;
    if (run === undefined) return;
    expectNoStackTrace(run);
    if (!this.#stderrExpected) expect(run.stderr).toBe('');
    if (!this.#exitExpected) expect(run.exitCode).toBe(0);
  }

  async #runProgram(words: readonly string[], isRefused: boolean): Promise<void> {
    this.finishRun();
    const [program, ...args] = words;
    if (program !== 'proofgate') throw new Error('only proofgate can be run');
    this.#args = args;
    const options = { cwd: this.#folder, env: this.#env, stdin: this.#stdin, isRefused };
    this.#run = await this.#program(args, options);
    this.#stdin = '';
    this.#exitExpected = false;
    this.#stderrExpected = false;
  }

  #setVariable(assignment: string): void {
    const at = assignment.indexOf('=');
    this.#env[assignment.slice(0, at)] = assignment.slice(at + 1).replaceAll('\\n', '\n');
  }

  async #repeatUntil(pattern: RegExp): Promise<void> {
    const options = { cwd: this.#folder, env: this.#env, isRefused: false };
    this.#run = await waitFor(String(pattern), async () => {
      const run = await this.#program(this.#args, { ...options, stdin: '' });
      return pattern.test(run.stdout) ? run : undefined;
    });
  }

  async #prepareFile(verb: string, first: string, second: string): Promise<boolean> {
    switch (verb) {
      case 'chmod':
        await chmod(join(this.#folder, second), Number.parseInt(first, 8));
        return true;
      case 'mkdir':
        await mkdir(join(this.#folder, first));
        return true;
      case 'symlink':
        await symlink(first, join(this.#folder, second));
        return true;
      case 'copy':
        await copyFile(join(this.#folder, first), join(this.#folder, second));
        return true;
      case 'fifo':
        execFileSync('mkfifo', ['-m', '600', join(this.#folder, first)]);
        return true;
      default:
        return false;
    }
  }

  async #checkFile(verb: string, first: string, second: string): Promise<boolean> {
    switch (verb) {
      case 'mode':
        expect(((await stat(join(this.#folder, second))).mode & 0o777).toString(8)).toBe(
          first.replace(/^0/, ''),
        );
        return true;
      case 'absent':
        await expect(stat(join(this.#folder, first))).rejects.toMatchObject({ code: 'ENOENT' });
        return true;
      case 'content':
        expect(await readFile(join(this.#folder, second), 'utf8')).toMatch(new RegExp(first, 'm'));
        return true;
      default:
        return false;
    }
  }

  #checkRun(verb: string, first: string, rest: string, second: string): void {
    if (this.#run === undefined) throw new Error(`unknown or misplaced: ${verb}`);
    switch (verb) {
      case 'exit':
        this.#exitExpected = true;
        expect(this.#run.exitCode).toBe(Number(first));
        return;
      case 'stdout':
        expect(this.#run.stdout).toMatch(new RegExp(rest, 'm'));
        return;
      case 'stderr':
        this.#stderrExpected = true;
        expect(this.#run.stderr).toMatch(new RegExp(rest, 'm'));
        return;
      case 'error':
        this.#exitExpected = true;
        this.#stderrExpected = true;
        expectCliError(this.#run, first, second === '' ? 2 : Number(second));
        return;
      default:
        throw new Error(`unknown: ${verb}`);
    }
  }
}
