/**
 * Pastes the shell blocks of a document into one real shell, in order; its other blocks are the files that they use
 * (`followed` and `saved` in the table of claims). The commands exist only in the document, so a changed block changes the
 * test.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { claimedBlocks } from '../support/docs/claimed.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { waitFor } from '../support/wait.ts';

/** Prefix of lines about the shell itself. */
const MARK = '\u001e';
/** Runs the files named on descriptor 3, one after another, and keeps their variables. */
const LOOP = `exec 2>&1; . "$1"; trap 'printf "\\n${MARK}failed %s %s\\n" "$?" "$BASH_COMMAND"' ERR
while read -r -u 3 file; do . "$file" 3<&-; printf '\\n${MARK}end\\n'; done`;

export interface FollowedPageOptions {
  readonly document: string;
  /** A new folder for the files, and the shell's working folder. */
  readonly folder: string;
  /** Replacements for texts in the blocks. Each must occur. */
  readonly reads: readonly (readonly [text: string, here: string])[];
  /** Shell functions that replace unavailable programs. */
  readonly functions: string;
  readonly env: Readonly<Record<string, string>>;
}

interface PastedBlock {
  readonly section: string;
  readonly text: string;
}

/** Text of a file in a document. @throws Error when the document has no such file */
export function savedIn(document: string, path: string): string {
  const found = claimedBlocks().find(
    ({ block, claim }) => block.file === document && claim.kind === 'saved' && claim.path === path,
  );
  if (found === undefined) throw new Error(`${document} has no ${path}`);
  return found.block.text;
}

export class FollowedPage {
  readonly folder: string;
  readonly #left: PastedBlock[];
  readonly #shell: ChildProcess;
  #said = '';
  #pasted = 0;

  private constructor(folder: string, left: readonly PastedBlock[], shell: ChildProcess) {
    this.folder = folder;
    this.#left = [...left];
    this.#shell = shell;
    shell.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text;
    });
  }

  static async open({ document, folder, reads, functions, env }: FollowedPageOptions): Promise<FollowedPage> {
    const claimed = claimedBlocks().filter(({ block }) => block.file === document);
    const whole = claimed.map(({ block }) => block.text).join('');
    const idle = reads.filter(([text]) => !whole.includes(text));
    if (idle.length > 0) throw new Error(`${document} has no ${idle.map(([text]) => text).join(', ')}`);
    const here = (text: string) => reads.reduce((all, [from, to]) => all.replaceAll(from, to), text);
    await mkdir(folder);
    for (const name of ['Dockerfile', 'bin', 'helm']) await symlink(checkoutPath(name), join(folder, name));
    for (const { block, claim } of claimed) {
      if (claim.kind === 'saved') await writeFile(join(folder, claim.path), here(block.text));
    }
    const blocks = claimed
      .filter(({ claim }) => claim.kind === 'followed')
      .map(({ block }) => ({ section: block.section, text: here(block.text) }));
    const shell = spawn('bash', ['--norc', '-c', LOOP, 'bash', functions], {
      cwd: folder,
      env: { ...process.env, HOME: folder, CHECKOUT: checkoutPath(), ...env },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    });
    return new FollowedPage(folder, blocks, shell);
  }

  /** Pastes the next block, which must be in this section. @returns its output @throws Error when one of its lines fails */
  async paste(section: string): Promise<string> {
    const next = this.#left.shift();
    if (next?.section !== section)
      throw new Error(`the next block is of "${next?.section}", not "${section}"`);
    return this.#run(next.text);
  }

  /** Runs lines of the test in the same shell. */
  async run(text: string): Promise<string> {
    return this.#run(text);
  }

  read(file: string): Promise<string> {
    return readFile(join(this.folder, file), 'utf8');
  }

  /** Sections of the blocks that no test has pasted. */
  get left(): readonly string[] {
    return this.#left.map(({ section }) => section);
  }

  close(): void {
    this.#shell.kill('SIGKILL');
  }

  async #run(text: string): Promise<string> {
    this.#pasted += 1;
    const file = join(this.folder, `.pasted-${this.#pasted}`);
    await writeFile(file, text);
    const from = this.#said.length;
    const end = `\n${MARK}end\n`;
    (this.#shell.stdio[3] as Writable).write(`${file}\n`);
    await waitFor(`the end of ${text}`, () =>
      this.#said.includes(end, from) || this.#shell.exitCode !== null ? true : undefined,
    );
    const said = this.#said.slice(from);
    if (!said.endsWith(end) || said.includes(`\n${MARK}failed `))
      throw new Error(`${text}\nends with: ${said}`);
    return said.slice(0, -end.length);
  }
}
