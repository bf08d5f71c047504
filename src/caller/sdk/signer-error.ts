/** Errors of the SDK, with the codes of the command line (docs/operate/cli.md). Neither text nor code contains a secret. */

import { CliError } from '../../process/program/errors.ts';
import { ClientError } from '../../protocol/client-error.ts';
import { BrokerError } from '../broker/broker-error.ts';
import { EnrollError } from '../enroll/enroll-error.ts';

/** The request was neither signed nor sent. */
export class SignerError extends Error {
  override readonly name = 'SignerError';
  /** Stable, such as `profile_not_found`. */
  readonly code: string;

  constructor(code: string, text: string) {
    super(`${code}: ${text}`);
    this.code = code;
  }
}

/** Converts an error of an internal module to a {@link SignerError}; returns other errors unchanged. */
export function asSignerError(error: unknown): unknown {
  const isKnown =
    error instanceof CliError ||
    error instanceof ClientError ||
    error instanceof EnrollError ||
    error instanceof BrokerError;
  return isKnown ? new SignerError(error.code, error.message) : error;
}
