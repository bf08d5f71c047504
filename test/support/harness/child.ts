/** A child process whose lines are kept and whose end is awaited, and which cannot outlive the test run. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { remainingMs, waitFor } from '../wait.ts';

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to this process's environment; `undefined` takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /**
   * Puts the child in its own process group, so that a terminal's Ctrl-C does not reach it and its parent stops it in order.
   * Default false.
   */
  readonly ownProcessGroup?: boolean;
}

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  readonly pid: number;
  /** Grow while the child runs; complete once {@link exited} has settled. */
  readonly stdoutLines: readonly string[];
  readonly stderrLines: readonly string[];
  /** Settles after the last line was read. Never rejects. */
  readonly exited: Promise<ExitStatus>;
  /** `undefined` while it runs. */
  exitStatus(): ExitStatus | undefined;
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, then SIGKILL after `timeoutMs`, by default when the test must end; returns how it ended. */
  stop(timeoutMs?: number): Promise<ExitStatus>;
  /** The first line of stdout or stderr that matches. Rejects when the child ends first. */
  waitForLine(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Outside of tests; a test waits until its deadline. */
const stopTimeoutMs = 10_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export function startChild(options: ChildOptions): Child {
  const { pid, child } = spawned(options);
  const stdoutLines = keepLines(child.stdout);
  const stderrLines = keepLines(child.stderr);
  let status: ExitStatus | undefined;
  const exited = new Promise<ExitStatus>((resolve) => {
    child.on('error', (error) => stderrLines.push(`spawn: ${error.message}`));
    child.on('close', (code, signal) => {
      running.delete(child);
      status = { code, signal };
      resolve(status);
    });
  });
  return {
    pid,
    stdoutLines,
    stderrLines,
    exited,
    exitStatus: () => status,
    signal: (signal) => void child.kill(signal),
    stop: (timeoutMs = remainingMs(stopTimeoutMs)) => stopChild(child, exited, timeoutMs),
    waitForLine: async (pattern) => {
      const found = await waitFor(`${options.command} to print ${pattern}`, () => {
        // Asked before the lines are looked at: once it has ended they are complete.
        const ended = status;
        const match = [...stdoutLines, ...stderrLines]
          .map((line) => pattern.exec(line))
          .find((candidate) => candidate);
        return match ?? ended;
      });
      if (!Array.isArray(found)) throw new Error(`it ended: ${describeExit(found, stderrLines)}`);
      return found;
    },
  };
}

/** For error messages: how the process ended, and its last log lines. */
export function describeExit(status: ExitStatus, stderrLines: readonly string[]): string {
  const how = status.signal === null ? `exit ${status.code}` : `signal ${status.signal}`;
  return [how, ...stderrLines.slice(-5)].join('\n');
}

function spawned(options: ChildOptions) {
  const child = spawn(options.command, [...options.args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.ownProcessGroup === true,
  });
  if (child.pid === undefined) {
    // Node tells the reason in an event, after this; unheard it would end the test run.
    child.on('error', () => {});
    throw new Error(`cannot start ${options.command}`);
  }
  running.add(child);
  return { pid: child.pid, child };
}

function keepLines(stream: Readable): string[] {
  const lines: string[] = [];
  createInterface({ input: stream }).on('line', (line) => lines.push(line));
  return lines;
}

async function stopChild(
  child: ChildProcess,
  exited: Promise<ExitStatus>,
  timeoutMs: number,
): Promise<ExitStatus> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  try {
    return await exited;
  } finally {
    clearTimeout(timer);
  }
}
