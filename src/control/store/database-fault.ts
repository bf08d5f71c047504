/** Classifies errors of either database for the store. It keeps no error text, which may quote values. */
import { types } from 'node:util';
import { ConstraintError, StoreFaultError, StoreUnavailableError } from './port.ts';

export type DatabaseFault =
  /** A retry of the transaction may succeed: a deadlock, a serialization failure. */
  | { readonly kind: 'repeat'; readonly code: string }
  /** An established connection broke. */
  | { readonly kind: 'connection_lost'; readonly code: string }
  | { readonly kind: 'unavailable'; readonly code: string }
  | {
      readonly kind: 'constraint';
      readonly constraint: 'unique' | 'reference';
      /** Name of the constraint in the schema. */
      readonly name: string;
    }
  | { readonly kind: 'other'; readonly code: string; readonly cause: Error };

/** The error that callers get. */
export function errorOf(fault: DatabaseFault): Error {
  switch (fault.kind) {
    case 'repeat':
    case 'connection_lost':
    case 'unavailable':
      return new StoreUnavailableError(`the database does not answer (${fault.code})`);
    case 'constraint':
      return new ConstraintError(fault.constraint, fault.name);
    case 'other': {
      const error = new StoreFaultError(`the database answers with an error (${fault.code})`);
      // Keep the stack frames without the message.
      const frames = fault.cause.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? [];
      error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n');
      return error;
    }
  }
}

/** An error's `code`; empty if absent. Some libraries' errors are not native, and Node's may be of another realm. */
export function codeOf(error: unknown): string {
  return isError(error) && 'code' in error ? String(error.code) : '';
}

export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}
