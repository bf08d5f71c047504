/** Databases' errors as the store sees them, whichever database it was. Nothing of their texts is kept: they may quote values. */
import { types } from 'node:util';
import { ConstraintError, StoreFaultError, StoreUnavailableError } from './port.ts';

export type DatabaseFault =
  /** The same transaction may succeed when it runs again: a deadlock, a failed serialization. */
  | { readonly kind: 'repeat'; readonly code: string }
  /** An established connection broke. */
  | { readonly kind: 'connection_lost'; readonly code: string }
  | { readonly kind: 'unavailable'; readonly code: string }
  | {
      readonly kind: 'constraint';
      readonly constraint: 'unique' | 'reference';
      /** As the schema names it. */
      readonly name: string;
    }
  | { readonly kind: 'other'; readonly code: string; readonly cause: Error };

/** What callers get for it. */
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
      // Where it came from, without what it says.
      const frames = fault.cause.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? [];
      error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n');
      return error;
    }
  }
}

/** An error's `code`, empty when it has none. Some libraries' errors are not native, and Node's may be of another realm. */
export function codeOf(error: unknown): string {
  return isError(error) && 'code' in error ? String(error.code) : '';
}

export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}
