/** A secret value that does not show in logs: converted to text or JSON, or inspected, it is `[redacted]`. */
import { inspect } from 'node:util';

export const REDACTED = '[redacted]';

export class Redacted<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** The plain value. Call it only to send it, sign it, or pass it on. */
  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
