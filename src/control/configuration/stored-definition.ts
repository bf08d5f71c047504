/** Reads definitions that Control stored as JSON. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** A stored definition does not match its schema. The fault is in Control or its database, never in the request. */
class StoredDefinitionError extends Error {
  override readonly name = 'StoredDefinitionError';
}

/** @returns a reader; it throws StoredDefinitionError */
export function storedDefinition<T extends TSchema>(schema: T): (text: string) => Static<T> {
  const compiled = Compile(schema);
  return (text) => {
    const value: unknown = JSON.parse(text);
    if (compiled.Check(value)) return value;
    throw new StoredDefinitionError('a stored definition does not fit its schema');
  };
}
