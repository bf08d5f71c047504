/** The decisions in an audit file that grows: each call parses only what was written since the last one. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';

export class AuditTrail {
  readonly #path: string;
  #inode = 0;
  /** Up to the end of the last complete line. */
  #readBytes = 0;
  #decisions: DecisionEvent[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws while there is no file */
  decisions(): readonly DecisionEvent[] {
    const lines = this.#newText().split('\n').filter(Boolean);
    const events = lines.map((line): DecisionEvent => JSON.parse(line));
    this.#decisions.push(...events.filter(({ event }) => event === 'proofgate.decision'));
    return [...this.#decisions];
  }

  /** Complete lines. */
  #newText(): string {
    const file = openSync(this.#path, 'r');
    try {
      const { ino, size } = fstatSync(file);
      // Another file under the same name, or one that was cut.
      if (ino !== this.#inode || size < this.#readBytes) {
        this.#readBytes = 0;
        this.#decisions = [];
      }
      this.#inode = ino;
      const bytes = Buffer.alloc(size - this.#readBytes);
      const count = readSync(file, bytes, 0, bytes.length, this.#readBytes);
      const complete = bytes.subarray(0, bytes.subarray(0, count).lastIndexOf(0x0a) + 1);
      this.#readBytes += complete.length;
      return complete.toString('utf8');
    } finally {
      closeSync(file);
    }
  }
}
