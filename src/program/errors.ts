/**
 * Every way in which a command fails: a stable code for scripts, one line for people, and an exit code.
 * Source: docs/cli.md "Errors and exit codes".
 */

/** What a process's exit code says. 1, for a fault of Proofgate itself, is nobody's to choose. */
export const EXIT_CODES = {
  done: 0,
  internal: 1,
  /** The command line, or a file that it names, is wrong: call again after mending it. */
  usage: 2,
  /** Understood, and turned down: by a verifier, by the API, by a bundle's or a profile's rules. */
  refused: 3,
  /** Timed out, or still pending. */
  timed_out: 4,
  unreachable: 5,
} as const;
export type FailureKind = Exclude<keyof typeof EXIT_CODES, 'done'>;

const CODE = /^[a-z][a-z0-9_]*$/;

/** The one error that commands throw. Neither code nor explanation ever holds a secret. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: string;
  readonly kind: FailureKind;

  /**
   * @param code stable, snake case
   * @param explanation becomes one line, whatever it holds
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

/** Line breaks become spaces, other control characters go: a terminal shows what is said, on one line. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').replace(/\p{C}/gu, '').trim();
  return line.length <= MAX_EXPLANATION_CHARACTERS ? line : `${line.slice(0, MAX_EXPLANATION_CHARACTERS)}…`;
}

/** Anything that was thrown as the error to show; what nobody foresaw is `internal`, without its stack. */
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
