/**
 * What a power cut could take from a directory, as the system calls of a process tell it: bytes that were written and
 * not synced, names that were made and whose directory was not.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const CALLS = 'openat,mkdir,symlink,rename,write,pwrite64,pwritev,writev,ftruncate,fsync,fdatasync';

/** Why calls cannot be watched here; undefined when they can. */
export function whyNoTrace(): string | undefined {
  const { error, status } = spawnSync('strace', ['-o', '/dev/null', 'true']);
  if (error !== undefined) return 'strace is not installed';
  return status === 0 ? undefined : 'strace may not trace';
}

export interface Trace {
  /** Lines on standard output, with the writes that were not yet on disk at that time. */
  readonly said: readonly { readonly text: string; readonly unsynced: readonly string[] }[];
  /** Renamed before their bytes were on the disk. */
  readonly renamedUnsynced: readonly string[];
  /** How often something was synced. */
  readonly syncs: number;
}

/** Runs Node under strace; what it does below `directory` counts. */
export function traceNode(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  directory: string,
  traceFile: string,
): Trace {
  const { status, stderr } = spawnSync(
    'strace',
    ['-f', '-y', '-s', '200', '-e', `trace=${CALLS}`, '-o', traceFile, process.execPath, ...args],
    // Through io_uring there would be no calls to see.
    { encoding: 'utf8', env: { ...process.env, ...env, UV_USE_IO_URING: '0' } },
  );
  if (status !== 0) throw new Error(`it ended with ${status}: ${stderr.slice(-2000)}`);
  return new TraceReader(directory).read(wholeCalls(readFileSync(traceFile, 'utf8')));
}

/** Calls in the order of their ends. strace prints a call that another thread interrupts in two parts. */
function wholeCalls(text: string): readonly string[] {
  const begun = new Map<string, string>();
  return text.split('\n').flatMap((line) => {
    const [, pid = '', call = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const [, start] = /^(.*) <unfinished \.\.\.>$/.exec(call) ?? [];
    if (start !== undefined) {
      begun.set(pid, start);
      return [];
    }
    const [, end] = /^<\.\.\. \w+ resumed>(.*)$/.exec(call) ?? [];
    return [end === undefined ? call : `${begun.get(pid) ?? ''}${end}`];
  });
}

class TraceReader {
  readonly #directory: string;
  readonly #unsynced = new Set<string>();
  readonly #said: { text: string; unsynced: readonly string[] }[] = [];
  readonly #renamedUnsynced: string[] = [];
  #syncs = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  read(calls: readonly string[]): Trace {
    for (const call of calls) this.#take(call);
    return { said: this.#said, renamedUnsynced: this.#renamedUnsynced, syncs: this.#syncs };
  }

  #take(call: string): void {
    const [, name = '', rest = ''] = /^(\w+)\((.*)\)\s+= \d+/.exec(call) ?? [];
    const [, descriptor, path = ''] = /^(\d+)<([^>]*)>/.exec(rest) ?? [];
    const paths = [...rest.matchAll(/"([^"]*)"/g)].map(([, text = '']) => text);
    if (name === 'fsync' || name === 'fdatasync') this.#synced(path);
    else if (descriptor === '1') this.#said.push({ text: paths[0] ?? '', unsynced: [...this.#unsynced] });
    else if (name === 'rename') this.#renamed(paths[0] ?? '', paths[1] ?? '');
    else if (name === 'symlink') this.#named(paths[1] ?? '');
    else if (name === 'mkdir') this.#named(paths[0] ?? '');
    else if (name !== 'openat') this.#add(path);
    else if (rest.includes('O_CREAT')) this.#named(paths[0] ?? '');
  }

  #synced(path: string): void {
    if (this.#isInside(path)) this.#syncs += 1;
    this.#unsynced.delete(path);
  }

  #renamed(from: string, to: string): void {
    const left = [...this.#unsynced].filter((path) => path === from || path.startsWith(`${from}/`));
    this.#renamedUnsynced.push(...left);
    this.#named(to);
  }

  #named(path: string): void {
    if (this.#isInside(path)) this.#add(dirname(path));
  }

  #add(path: string): void {
    if (this.#isInside(path)) this.#unsynced.add(path);
  }

  #isInside(path: string): boolean {
    return path === this.#directory || path.startsWith(join(this.#directory, '/'));
  }
}
