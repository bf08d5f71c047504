/** The destination of a verifier's log lines: pino, or the logger of the application that embeds the verifier. */

interface LogMethod {
  /** @param fields fields of the line, never a secret */
  (fields: object, text: string): void;
  (text: string): void;
}

export interface Logger {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
}
