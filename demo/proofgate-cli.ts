/** Runs `bin/proofgate` as a user has it: every key, enrollment, signature and request of the demo comes from this program. */
import { checkoutPath } from '../test/support/harness/checkout.ts';
import { type Child, type ChildOptions, startChild } from '../test/support/harness/child.ts';
import { isRecord, parseJson } from './answer.ts';

export const proofgateProgram = checkoutPath('bin', 'proofgate');

export interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const commandTimeoutMs = 30_000;

/** The environment's own settings (PROOFGATE_KEY, …) must not change what the demo does. */
const withoutSettings = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => name.startsWith('PROOFGATE_'))
    .map((name) => [name, undefined]),
);

/** How the harness starts `proofgate <args>`. */
export function proofgateChild(args: readonly string[]): ChildOptions {
  return {
    command: process.execPath,
    args: [proofgateProgram, ...args],
    env: withoutSettings,
    ownProcessGroup: true,
  };
}

export interface RunningCommand {
  /** Whether its result has come out. */
  hasAnswered(): boolean;
  /** Settles at its end, whatever the exit code. Never rejects. */
  readonly ended: Promise<CommandResult>;
}

export class ProofgateCli {
  readonly #running = new Set<Child>();
  #closed = false;

  begin(args: readonly string[]): RunningCommand {
    if (this.#closed) throw new Error('the demo is being stopped');
    const child = startChild(proofgateChild(args));
    return { hasAnswered: () => child.stdoutLines.length > 0, ended: this.#end(child) };
  }

  async #end(child: Child): Promise<CommandResult> {
    this.#running.add(child);
    const timer = setTimeout(() => void child.stop(0), commandTimeoutMs);
    const { code } = await child.exited;
    clearTimeout(timer);
    this.#running.delete(child);
    return { exitCode: code, stdout: child.stdoutLines.join('\n'), stderr: child.stderrLines.join('\n') };
  }

  /** Runs to the end, whatever the exit code. */
  async run(args: readonly string[]): Promise<CommandResult> {
    return this.begin(args).ended;
  }

  /**
   * Runs a command that must succeed, with `--output json`.
   * @throws with the program's output
   */
  async runForJson(args: readonly string[]): Promise<unknown> {
    const { exitCode, stdout, stderr } = await this.run([...args, '--output', 'json']);
    if (exitCode !== 0) throw new Error(`proofgate ${args[0]} did not work: ${lastErrorOf(stderr)}`);
    return JSON.parse(stdout);
  }

  async stop(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#running].map((child) => child.stop()));
  }
}

/** `code: explanation`, or the whole output when there is no such line. */
export function lastErrorOf(stderr: string): string {
  const errors = stderr.split('\n').map(parseJson).filter(isRecord);
  const found = errors.findLast((line) => typeof line.error === 'string');
  return found === undefined ? stderr : `${found.error}: ${String(found.message)}`;
}
