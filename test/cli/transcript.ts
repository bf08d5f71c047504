/**
 * Transcripts of the command line, after the test scripts of FiloSottile's age: what is typed, and what must come of it.
 *
 *     # A comment.
 *     $ proofgate keygen --out key.pem          runs it; what follows is expected of this run
 *     stdout ^Ed25519 key                       a regular expression; without such a line: anything
 *     $ proofgate keygen --out key.pem
 *     error file_exists                         one line on stderr with this code, nothing on stdout, exit 2
 *     error origin_not_allowed 3                the same with exit 3
 *
 * Without `error` or `exit N`, exit 0 and an empty stderr are expected; `stderr REGEX` allows what it matches.
 * Other lines prepare or check files: `chmod 644 FILE`, `mkdir DIR`, `symlink TARGET LINK`, `copy FROM TO`,
 * `fifo FILE`, `set NAME=VALUE` (environment, to the end), `stdin TEXT` (of the next run), `mode 0600 FILE`,
 * `absent FILE`, `content REGEX FILE`. Files that are there from the beginning stand at the end, each after `-- NAME --`.
 */

export interface Step {
  /** Of the transcript, from 1. */
  readonly line: number;
  readonly verb: string;
  readonly words: readonly string[];
  /** All after the verb. */
  readonly rest: string;
}

export interface Transcript {
  readonly steps: readonly Step[];
  readonly files: ReadonlyMap<string, string>;
}

/** @throws Error for a line that is not in the format */
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

/** Words as a shell would see them: parted by spaces, with single and double quotes, without escapes. */
function splitWords(text: string): readonly string[] {
  const words = text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}
