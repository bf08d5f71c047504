/**
 * Parses transcripts of the command line: commands and their expected results, in the style of FiloSottile's age test scripts.
 *
 *     # A comment.
 *     $ proofgate keygen --out key.pem          runs it; the next lines state its expected result
 *     stdout ^Ed25519 key                       a regular expression; without this line, stdout may be anything
 *     $ proofgate keygen --out key.pem
 *     error file_exists                         one line on stderr with this code, nothing on stdout, exit 2
 *     error origin_not_allowed 3                the same with exit 3
 *
 * The default is exit 0 and an empty stderr. `error` and `exit N` change the exit code; `stderr REGEX` allows matching output.
 * Other lines prepare or check files: `chmod 644 FILE`, `mkdir DIR`, `symlink TARGET LINK`, `copy FROM TO`,
 * `fifo FILE`, `set NAME=VALUE` (environment, to the end), `stdin TEXT` (of the next run), `mode 0600 FILE`,
 * `absent FILE`, `content REGEX FILE`. `until REGEX` repeats a run, such as a `get`, until its stdout matches. `keep NAME REGEX` keeps a group of stdout, which later commands name as `{NAME}`. Initial files are at the end of the transcript, each after `-- NAME --`.
 */

export interface Step {
  /** Line of the transcript, counted from 1. */
  readonly line: number;
  readonly verb: string;
  readonly words: readonly string[];
  /** Text after the verb. */
  readonly rest: string;
}

export interface Transcript {
  readonly steps: readonly Step[];
  readonly files: ReadonlyMap<string, string>;
}

/** @throws Error for a line with invalid syntax */
export function parseTranscript(text: string): Transcript {
  const [script = '', ...parts] = text.split(/^-- (.+) --\n/m);
  const files = new Map<string, string>();
  for (let i = 0; i + 1 < parts.length; i += 2) files.set(parts[i] ?? '', parts[i + 1] ?? '');
  const steps = script
    .split('\n')
    .map((content, i) => ({ content: content.trim(), line: i + 1 }))
    .filter(({ content }) => content !== '' && !content.startsWith('#'))
    .map(({ content, line }) => parseStep(content, line));
  return { steps, files };
}

function parseStep(content: string, line: number): Step {
  const [, verb = '', rest = ''] = /^(\S+)\s*(.*)$/.exec(content) ?? [];
  return { line, verb, words: splitWords(rest), rest };
}

/** Splits words as a shell does: at spaces, with single and double quotes, without escapes. */
function splitWords(text: string): readonly string[] {
  const words = text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}
