/** A directory that becomes an image's root: read-only files with one timestamp, and the list of them. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const READABLE = 0o444;
const EXECUTABLE = 0o555;
const DIRECTORY = 0o555;

export class ImageRoot {
  #directory;
  /** Entries of the list, by path. */
  #entries = new Map();
  #folders = new Set();

  /** @param directory a directory that does not exist yet */
  constructor(directory) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  copy(path, from, { executable = false } = {}) {
    copyFileSync(from, this.#place(path));
    this.#keep(path, executable);
  }

  write(path, content, { executable = false } = {}) {
    writeFileSync(this.#place(path), content);
    this.#keep(path, executable);
  }

  link(path, to) {
    symlinkSync(to, this.#place(path));
    this.#entries.set(path, { kind: 'link', to });
  }

  /**
   * Sets the time of all entries; afterwards nothing can be added. @returns a line for each entry, sorted by path:
   * mode, bytes, SHA-256 and path of a file, or path and target of a link
   */
  finish(epochSeconds) {
    const folders = [...this.#folders].sort().reverse();
    for (const path of this.#entries.keys())
      lutimesSync(join(this.#directory, path), epochSeconds, epochSeconds);
    for (const folder of [...folders, '.']) {
      chmodSync(join(this.#directory, folder), DIRECTORY);
      lutimesSync(join(this.#directory, folder), epochSeconds, epochSeconds);
    }
    const paths = [...this.#entries.keys()].sort();
    return paths.map((path) => lineOf(path, this.#entries.get(path)));
  }

  #place(path) {
    for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) this.#folders.add(folder);
    const file = join(this.#directory, path);
    mkdirSync(dirname(file), { recursive: true });
    return file;
  }

  #keep(path, executable) {
    const file = join(this.#directory, path);
    const mode = executable ? EXECUTABLE : READABLE;
    chmodSync(file, mode);
    const content = readFileSync(file);
    const sha256 = createHash('sha256').update(content).digest('hex');
    this.#entries.set(path, { kind: 'file', mode, bytes: content.length, sha256 });
  }
}

function lineOf(path, entry) {
  if (entry.kind === 'link') return `link ${path} ${entry.to}`;
  return `${entry.mode.toString(8).padStart(4, '0')} ${entry.bytes} ${entry.sha256} ${path}`;
}
