/** Explains why a program cannot listen. */
import { CliError, systemErrorCode, usageError } from '../program/errors.ts';
import { ListenError } from './connection-listener.ts';

/** @returns CliError `listen_failed`, or the error itself when it says what to do */
export function listenFailure(error: unknown, address: string): CliError {
  if (error instanceof CliError) return error;
  const why = error instanceof ListenError ? error.message : (systemErrorCode(error) ?? 'error');
  const cause = why === 'EADDRINUSE' ? 'another process uses this port (EADDRINUSE)' : why;
  return usageError('listen_failed', `cannot listen on ${address}: ${cause}`);
}
