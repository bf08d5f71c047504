/** A text that can be spent: a workload token, a challenge. Its own text, JSON and inspection are `[redacted]`. */
import { inspect } from 'node:util';

const REDACTED = '[redacted]';

export class SecretText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** For whoever sends or signs it. */
  reveal(): string {
    return this.#text;
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
