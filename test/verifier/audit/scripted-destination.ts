/** A destination that is where the test says, and counts who follows it. */
import { closeSync, openSync } from 'node:fs';
import type { Destination } from '../../../src/verifier/audit/destination.ts';

export class ScriptedDestination implements Destination {
  descriptor: number | undefined;
  readonly isPipe = false;
  isTorn = false;
  /** Arguments of each call of `follow`. */
  readonly followed: boolean[] = [];
  /** What `follow` answers. */
  failure: string | undefined;
  /** The descriptor after the next `follow`. */
  next: number | undefined;
  closed = 0;

  /** @param descriptor none: there is nothing to write to */
  constructor(descriptor?: number) {
    this.descriptor = descriptor;
  }

  follow(force: boolean): string | undefined {
    this.followed.push(force);
    this.descriptor = this.next ?? this.descriptor;
    return this.failure;
  }

  close(): void {
    this.closed += 1;
  }
}

/** Takes nothing, as a full disk does. */
export function withFullDevice<T>(use: (descriptor: number) => T): T {
  const descriptor = openSync('/dev/full', 'w');
  try {
    return use(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
