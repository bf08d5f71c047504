/**
 * Errors of commands: a stable code for scripts, a one-line message for people, and an exit code.
 * Source: docs/operate/cli.md "Errors and exit codes".
 */

/** Exit codes of a process. 1 is for faults of Proofgate itself. */
export const EXIT_CODES = {
  done: 0,
  internal: 1,
  /** The command line or a file that it names is invalid: correct it and run again. */
  usage: 2,
  /** The input is valid, and a verifier, the API or a rule of a bundle or profile rejected it. */
  refused: 3,
  /** Timed out, or still pending. */
  timed_out: 4,
  unreachable: 5,
  /** Successful, with changes: `ctl preview`, or with `--detailed-exitcode`. */
  changed: 6,
} as const;
export type FailureKind = Exclude<keyof typeof EXIT_CODES, 'done' | 'changed'>;

const CODE = /^[a-z][a-z0-9_]*$/;

/** The error that commands throw. Its code and its explanation never contain a secret. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: string;
  readonly kind: FailureKind;

  /**
   * @param code stable, snake case
   * @param explanation converted to one line
   */
  constructor(kind: FailureKind, code: string, explanation: string) {
    super(oneLine(explanation));
    if (!CODE.test(code)) throw new Error(`not an error code: ${code}`);
    this.kind = kind;
    this.code = code;
  }

  get exitCode(): number {
    return EXIT_CODES[this.kind];
  }
}

export function usageError(code: string, explanation: string): CliError {
  return new CliError('usage', code, explanation);
}

const MAX_EXPLANATION_CHARACTERS = 2000;

/** Replaces line breaks by spaces and removes other control characters, so that a terminal shows one line. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').replace(/\p{C}/gu, '').trim();
  return line.length <= MAX_EXPLANATION_CHARACTERS ? line : `${line.slice(0, MAX_EXPLANATION_CHARACTERS)}…`;
}

/** Converts any thrown value to the error to show. An unexpected error becomes `internal`, without its stack trace. */
export function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  const explanation = error instanceof Error && error.message !== '' ? error.message : 'unexpected failure';
  return new CliError('internal', 'internal', explanation);
}

/** The `code` of a system error (`ENOENT`, …); undefined for anything else. */
export function systemErrorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The system code or class name of an error, for logs. A message or stack trace could contain request data. */
export function faultName(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.name : typeof error);
}
