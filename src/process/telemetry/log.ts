/** What a verifier writes log lines to: pino, or whatever an application that embeds one gives in its place. */

interface LogMethod {
  /** @param fields of the line; never a secret */
  (fields: object, text: string): void;
  (text: string): void;
}

export interface Logger {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
}
