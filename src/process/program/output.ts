/**
 * Output of a command: results on stdout, errors and notes on stderr, as text or as JSON with one object on each line.
 * `jsonl` is `json` with each item of a list on its own line.
 * Source: docs/operate/cli.md "Output".
 */
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { CliError } from './errors.ts';
import { visibleJson } from './visible-text.ts';

export const OUTPUT_FORMATS = ['text', 'json', 'jsonl'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** The process's environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Members of a JSON result, in snake case. */
export type JsonMembers = { readonly [member: string]: unknown };

const RED = '\u001b[31m';
const RESET = '\u001b[39m';
const ERASE_LINE = '\r\u001b[2K';

export class Output {
  readonly stdout: Writable;
  readonly #stderr: Writable;
  readonly #colored: boolean;
  readonly #rewritesLines: boolean;
  #showsProgress = false;
  #format: OutputFormat = 'text';
  #exitCode = 0;

  constructor(stdout: Writable, stderr: Writable, env: Environment) {
    this.stdout = stdout;
    this.#stderr = stderr;
    this.#rewritesLines = isTerminal(stderr);
    // https://no-color.org: set and not empty.
    this.#colored = isTerminal(stderr) && (env.NO_COLOR ?? '') === '';
  }

  get format(): OutputFormat {
    return this.#format;
  }

  /** Columns of the terminal of stdout; undefined when stdout is not a terminal. */
  get width(): number | undefined {
    const { stdout } = this;
    return isTerminal(stdout) && 'columns' in stdout && typeof stdout.columns === 'number'
      ? stdout.columns
      : undefined;
  }

  useFormat(format: OutputFormat): void {
    this.#format = format;
  }

  /** Writes the command's result: the lines as text, or the object as JSON. */
  result(lines: readonly string[], object: JsonMembers): void {
    this.#endProgress();
    const text = this.#format === 'text' ? lines.join('\n') : visibleJson(object);
    if (text !== '') this.stdout.write(`${text}\n`);
  }

  /** Writes one item of a list, for `jsonl`; waits for a slow reader. */
  async item(object: JsonMembers): Promise<void> {
    this.#endProgress();
    if (!this.stdout.write(`${visibleJson(object)}\n`)) await once(this.stdout, 'drain');
  }

  /** Exit code of the process unless the command throws; 0 by default. */
  get exitCode(): number {
    return this.#exitCode;
  }

  /** For commands whose exit code is part of their result. */
  endWith(exitCode: number): void {
    this.#exitCode = exitCode;
  }

  /** Writes a note, which is neither a result nor an error. */
  note(code: string, text: string): void {
    this.#endProgress();
    this.#stderr.write(
      this.#format === 'text' ? `${text}\n` : `${JSON.stringify({ note: code, message: text })}\n`,
    );
  }

  /**
   * Shows progress: one line that the next one overwrites and the result erases.
   * @returns false when stderr is not a terminal or the format is `json`, so that nothing was shown
   */
  progress(text: string): boolean {
    if (!this.#rewritesLines || this.#format === 'json') return false;
    this.#stderr.write(`${ERASE_LINE}${text}`);
    this.#showsProgress = true;
    return true;
  }

  #endProgress(): void {
    if (this.#showsProgress) this.#stderr.write(ERASE_LINE);
    this.#showsProgress = false;
  }

  error(error: CliError): void {
    this.#endProgress();
    this.#stderr.write(
      this.#format === 'text'
        ? `${this.#colored ? `${RED}error:${RESET}` : 'error:'} ${error.code}: ${error.message}\n`
        : `${JSON.stringify({ error: error.code, message: error.message })}\n`,
    );
  }
}

export function isTerminal(stream: Readable | Writable): boolean {
  return 'isTTY' in stream && stream.isTTY === true;
}

/** Environment, output and version that a command gets from its process. */
export interface CliContext {
  readonly env: Environment;
  readonly output: Output;
  /** Package version, such as `0.2.4`. */
  readonly version: string;
  /** The terminal on which a person can answer a question; undefined if there is none. */
  readonly terminal?: { readonly input: Readable; readonly output: Writable } | undefined;
}
