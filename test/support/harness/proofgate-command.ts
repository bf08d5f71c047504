/** Runs `proofgate <args>` to its end, as a user or an init container does. */

import { remainingMs } from '../wait.ts';
import { startChild } from './child.ts';
import { proofgateCommand } from './program.ts';

export interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const ELSEWHERE_MS = 60_000;

/** Whatever the exit code; killed when it takes too long. */
export async function runProofgate(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
  release?: string,
): Promise<CommandResult> {
  const child = startChild({ ...proofgateCommand(args, release), env });
  const timer = setTimeout(() => void child.stop(0), remainingMs(ELSEWHERE_MS));
  const { code } = await child.exited;
  clearTimeout(timer);
  return { exitCode: code, stdout: child.stdoutLines.join('\n'), stderr: child.stderrLines.join('\n') };
}

/** Code of the one error; empty without one. As text or, with `--output json`, as an object. */
export function errorCode({ stderr }: Pick<CommandResult, 'stderr'>): string {
  return /^error: ([a-z0-9_]+):|^\{"error":"([a-z0-9_]+)"/m.exec(stderr)?.slice(1).find(Boolean) ?? '';
}
