/** A secret text, such as a workload token or a challenge. Converted to text or JSON, or inspected, it is `[redacted]`. */
import { inspect } from 'node:util';

const REDACTED = '[redacted]';

export class SecretText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The plain text. Call it only to send or sign it. */
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
